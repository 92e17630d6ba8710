#include "hccl/ps/replay.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hccl/ps/trained_job.hpp"
#include "tests/support/training/training.hpp"

/// Real gradients in the order of simulated time, against training without servers.
namespace hcclsim::hccl {
namespace {

using Job = test::TrainedJob;
using test::by_allreduce;
using test::largest_difference;
using test::Trained;

TEST(PsReplay, AppliesTheMeanOfARoundAsA13) {
  const std::vector<float> gradients{3, 6, 9};
  SynchronousRounds rounds(1, 3);
  std::vector<std::size_t> complete;
  for (std::uint32_t worker = 0; worker < 3; ++worker) complete = rounds.push(0, {worker, 0});
  ASSERT_EQ(complete, std::vector<std::size_t>{0});
  std::vector<float> sum{0};
  for (const PsContribution& one : rounds.pushed(0)) sum[0] += gradients[one.worker];
  std::vector<float> weight{0};
  const device::ParameterSlot slot{.name = "w", .elements = 1};
  device::WorkerPool pool(1);
  device::OptimizerState optimizer({.rule = models::Optimizer::sgd}, std::span(&slot, 1));
  optimizer.step(pool, weight, sum, 1.0F / 3, 1);
  rounds.updated(0);
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    ASSERT_TRUE(rounds.ready_for_pull(0));
    EXPECT_EQ(weight[0], -6);
    rounds.pull(0);
  }
}

TEST(PsReplay, SynchronousTrainingOfTwoWorkersIsDataParallelismBitByBit) {
  for (const char* const model : {"mlp:20,16,10", "lenet"}) {
    for (const auto optimizer : {models::Optimizer::sgd, models::Optimizer::momentum, models::Optimizer::adam}) {
      SCOPED_TRACE(fmt::format("{}, {}", model, models::name_of(optimizer)));
      const Job job{.model = model, .optimizer = optimizer};
      const Trained trained = train(job);
      const auto weights = test::weights_of(*by_allreduce(job), 0);
      EXPECT_EQ(trained.replay->weights_of(0), weights);
      EXPECT_EQ(trained.replay->weights_of(1), weights);
      EXPECT_EQ(trained.replay->server_weights(), weights);
    }
  }
}

TEST(PsReplay, SynchronousTrainingOfFourWorkersIsTheMeanUpToRounding) {
  const Job job{.workers = 4, .servers = 3};
  const Trained trained = train(job);
  EXPECT_LT(largest_difference(trained.replay->weights_of(3), test::weights_of(*by_allreduce(job), 0)), 1e-6);
  for (std::uint32_t worker = 1; worker < 4; ++worker) {
    EXPECT_EQ(trained.replay->weights_of(worker), trained.replay->weights_of(0));
  }
}

TEST(PsReplay, AsynchronousTrainingOfOneWorkerIsPlainSgd) {
  const Job job{.workers = 1, .servers = 2, .steps = 8};
  const Trained trained = train(job, [](PsOptions& options) { options.asynchronous = true; });
  EXPECT_EQ(trained.replay->weights_of(0), test::weights_of(*by_allreduce(job), 0));
}

TEST(PsReplay, AsynchronousTrainingDependsOnSimulatedTimeAlone) {
  const Job job{.workers = 3, .servers = 2, .steps = 6};
  const auto uneven = [](PsOptions& options) {
    options.asynchronous = true;
    options.skew = device::Skew({.speeds = {1, 0.7, 0.3}}, 3);
  };
  const Trained one = train(job, uneven);
  const Trained two = train(job, uneven);
  EXPECT_EQ(one.replay->server_weights(), two.replay->server_weights());
  const Trained even = train(job, [](PsOptions& options) { options.asynchronous = true; });
  EXPECT_GT(largest_difference(one.replay->server_weights(), even.replay->server_weights()), 0);
  EXPECT_EQ(one.replay->steps().size(), 18U);
}

TEST(PsReplay, ParametersByAllreduceAreTrainedTheSame) {
  const Job job{};
  const auto half = [](PsOptions& options) {
    std::erase_if(options.parameters, [](const auto& one) { return one.gradient % 2 == 0; });
  };
  // Without a reduction in the simulation, whose time is nothing to the numbers: all workers end a step together.
  const Trained trained = train(job, half);
  EXPECT_EQ(trained.replay->weights_of(0), test::weights_of(*by_allreduce(job), 0));
}

TEST(PsReplay, ARecoveredServerChangesNothingOfPlainSgd) {
  const Job job{.servers = 2, .steps = 40};
  const Trained whole = train(job);
  for (const char* const failure : {"server-1 at 5ms restart 60s", "server-1 at 5.3ms restart 60s",
                                    "server-1 at 5.45ms restart 60s", "server-1 at 5.6ms restart 6ms"}) {
    SCOPED_TRACE(failure);
    const Trained recovered = train(job, [&](PsOptions& options) {
      options.recovery.enabled = true;
      options.failures = {parse_ps_failure(failure)};
    });
    EXPECT_EQ(recovered.outcome.failure, "");
    EXPECT_EQ(recovered.replay->weights_of(0), whole.replay->weights_of(0));
  }
  const Trained back = train(job, [](PsOptions& options) {
    options.recovery = {.enabled = true, .from = PsRecovery::From::checkpoint, .checkpoint_every = 3};
    options.failures = {parse_ps_failure("worker-1 at 10ms restart 60s")};
  });
  EXPECT_EQ(back.replay->weights_of(1), whole.replay->weights_of(0));
}

TEST(PsReplay, MoreServersChangeNothingOfTheNumbers) {
  const Job job{.steps = 40};
  const Trained scaled = train(job, [](PsOptions& options) {
    options.spare_servers = {{.number = 6}};
    options.node_start = 1e-3;
    options.requests = {parse_ps_request("5ms scaleout server=1"), parse_ps_request("20ms scalein server-1")};
  });
  EXPECT_GT(scaled.outcome.moved, 0U);
  EXPECT_EQ(scaled.replay->weights_of(0), train(job).replay->weights_of(0));
}

TEST(PsReplay, ANewWorkerBeginsWithTheServersWeights) {
  const Job job{.steps = 40};
  const Trained scaled = train(job, [](PsOptions& options) {
    options.spare_workers = {{.number = 6}};
    options.node_start = 1e-3;
    options.requests = {parse_ps_request("5ms scaleout worker=1")};
  });
  EXPECT_EQ(scaled.outcome.failure, "");
  EXPECT_EQ(scaled.replay->weights_of(2), scaled.replay->weights_of(0));
}

}  // namespace
}  // namespace hcclsim::hccl
