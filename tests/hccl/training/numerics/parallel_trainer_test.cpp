#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/hccl/training/numerics/trained.hpp"

/// Training in stages, with several micro-batches, shared parameters and recomputation, against training of the whole
/// network on one device, which trainer_test.cpp compares to hand calculations.
namespace hcclsim::hccl {
namespace {

using test::expect_near;
using test::largest_difference;
using test::llama_setup;
using test::ParallelSetup;
using test::perceptron_setup;
using test::train;
using test::Trained;
using test::transformer_setup;

/// Losses and gradients of micro-batches are added, so M of them with 1/M of the learning rate and without momentum
/// train like one batch of all their samples.
TEST(ParallelTrainer, MicroBatchesTogetherTrainLikeOneBatch) {
  ParallelSetup many = perceptron_setup(4);
  many.options.optimizer.rule = models::Optimizer::sgd;
  many.options.learning_rate = device::LearningRate(0.01);
  ParallelSetup one = many;
  one.model.batch = 8;
  one.shape.micro_batches = 1;
  one.options.learning_rate = device::LearningRate(0.04);
  const Trained parts = train(many);
  const Trained whole = train(one);
  for (std::size_t step = 0; step < parts.losses.size(); ++step) {
    EXPECT_NEAR(parts.losses[step], 4 * whole.losses[step], 1e-5);
    EXPECT_NEAR(parts.norms[step], 4 * whole.norms[step], 1e-5);
    EXPECT_EQ(parts.accuracies[step], whole.accuracies[step]);
  }
  EXPECT_LT(largest_difference(parts.weights, whole.weights), 1e-6);
}

struct PipelineCase {
  std::uint32_t stages = 1;
  std::uint32_t chunks = 1;
  std::uint32_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
};

std::string case_name(const testing::TestParamInfo<PipelineCase>& info) {
  std::string name = fmt::format("{}_{}_stages_{}_chunks_{}_micro_batches", name_of(info.param.schedule),
                                 info.param.stages, info.param.chunks, info.param.micro_batches);
  std::ranges::replace(name, '-', '_');
  return name;
}

class Pipelines : public testing::TestWithParam<PipelineCase> {
 protected:
  [[nodiscard]] static ParallelSetup in_stages(ParallelSetup setup) {
    const PipelineCase& given = GetParam();
    setup.shape = {given.stages, given.micro_batches, given.chunks, given.schedule};
    return setup;
  }
};

/// The same sums in the same order: the same bits.
TEST_P(Pipelines, TrainLikeOneDevice) {
  for (const ParallelSetup& whole :
       {perceptron_setup(GetParam().micro_batches), llama_setup(GetParam().micro_batches)}) {
    const bool fits = test::stages_of(whole, models::make_model(whole.model)).front().layers %
                          (GetParam().stages * GetParam().chunks) ==
                      0;
    if (!fits) continue;
    const Trained one = train(whole);
    const Trained piped = train(in_stages(whole));
    EXPECT_EQ(piped.losses, one.losses);
    EXPECT_EQ(piped.accuracies, one.accuracies);
    EXPECT_TRUE(piped.weights == one.weights);
    for (std::size_t step = 0; step < one.norms.size(); ++step) EXPECT_NEAR(piped.norms[step], one.norms[step], 1e-5);
  }
}

/// Tables that the first and the last stage use have two gradients, added in another order.
TEST_P(Pipelines, ShareTheTableOfTokens) {
  const ParallelSetup whole = transformer_setup(GetParam().micro_batches);
  if (whole.model.layers.value_or(0) % (GetParam().stages * GetParam().chunks) != 0) return;
  expect_near(train(in_stages(whole)), train(whole), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Pipelines,
                         testing::Values(PipelineCase{2, 1, 2, PipelineSchedule::gpipe},
                                         PipelineCase{2, 1, 4, PipelineSchedule::one_f_one_b},
                                         PipelineCase{4, 1, 4, PipelineSchedule::one_f_one_b},
                                         PipelineCase{4, 1, 6, PipelineSchedule::gpipe},
                                         PipelineCase{2, 2, 4, PipelineSchedule::one_f_one_b_interleave},
                                         PipelineCase{2, 2, 2, PipelineSchedule::gpipe_interleave},
                                         PipelineCase{4, 2, 4, PipelineSchedule::one_f_one_b_interleave}),
                         case_name);

/// Two replicas: every sum has two terms, in whatever order, so parts have the bits of the whole.
TEST(ParallelTrainer, SharedParametersChangeNoBit) {
  for (const std::uint32_t micro_batches : {1U, 3U}) {
    ParallelSetup setup = transformer_setup(micro_batches);
    setup.replicas = 2;
    setup.options.optimizer.rule = models::Optimizer::adamw;
    setup.options.optimizer.weight_decay = 0.01;
    const Trained whole = train(setup);
    for (const char* const kind : {"zero1", "on:threshold=0"}) {
      setup.optimizer_parallel = kind;
      const Trained shared = train(setup);
      EXPECT_EQ(shared.losses, whole.losses) << kind;
      EXPECT_TRUE(shared.weights == whole.weights) << kind;
      EXPECT_NEAR(shared.norms.back(), whole.norms.back(), 1e-5) << kind;
    }
  }
}

/// Gradients that are reduced with every micro-batch are added in another order.
TEST(ParallelTrainer, SharedGradientsAndWeightsTrainAlike) {
  for (const char* const kind : {"zero1", "zero2", "zero3", "zero2:shard=2", "on:shard=2,threshold=0"}) {
    for (const std::uint32_t micro_batches : {1U, 2U}) {
      ParallelSetup setup = llama_setup(micro_batches);
      setup.replicas = 4;
      const Trained whole = train(setup);
      setup.optimizer_parallel = kind;
      SCOPED_TRACE(fmt::format("{}, {} micro-batches", kind, micro_batches));
      expect_near(train(setup), whole, 2e-5);
    }
  }
}

/// Stages, replicas, parts, recomputation, a wire of half precision, clipping and a dynamic scale together.
TEST(ParallelTrainer, EverythingTogetherTrainsAlike) {
  ParallelSetup plain = transformer_setup(4);
  plain.replicas = 2;
  plain.options.clip_norm = 0.5;
  plain.options.loss_scale = device::LossScaler::parse("dynamic:1024:2");
  for (const DataType wire : {DataType::fp32, DataType::fp16}) {
    plain.wire = wire;
    const Trained whole = train(plain);
    for (const char* const kind : {"off", "zero1", "zero2", "zero3"}) {
      ParallelSetup setup = plain;
      setup.shape.stages = 2;
      setup.optimizer_parallel = kind;
      setup.recompute = "full";
      SCOPED_TRACE(fmt::format("{}, {}", kind, name_of(wire)));
      expect_near(train(setup), whole, wire == DataType::fp32 ? 2e-5 : 2e-3);
    }
  }
}

TEST(ParallelTrainer, RecomputationChangesNoBit) {
  for (const char* const what : {"full", "layers:2", "operators:gelu"}) {
    for (const std::uint32_t stages : {1U, 2U}) {
      ParallelSetup setup = transformer_setup(2);
      setup.shape.stages = stages;
      const Trained kept = train(setup);
      setup.recompute = what;
      EXPECT_TRUE(train(setup) == kept) << what << " in " << stages << " stages";
    }
  }
}

TEST(ParallelTrainer, HasTheSameBitsForAnyNumberOfWorkers) {
  ParallelSetup setup = transformer_setup(4);
  setup.replicas = 2;
  setup.shape.stages = 2;
  setup.optimizer_parallel = "zero2";
  setup.options.workers = 1;
  const Trained one = train(setup);
  for (const unsigned workers : {2U, 3U}) {
    setup.options.workers = workers;
    EXPECT_TRUE(train(setup) == one) << workers << " workers";
  }
}

TEST(ParallelTrainer, GoesOnFromACheckpointBitByBit) {
  for (const char* const kind : {"off", "zero1", "zero3"}) {
    ParallelSetup setup = transformer_setup(4);
    setup.replicas = 2;
    setup.shape.stages = 2;
    setup.optimizer_parallel = kind;
    setup.options.optimizer.rule = models::Optimizer::adam;
    const std::string path = testing::TempDir() + fmt::format("parallel_{}.ckpt", kind);
    const auto straight = test::make_trainer(setup);
    for (int step = 0; step < 4; ++step) straight->step(false);
    const auto first = test::make_trainer(setup);
    for (int step = 0; step < 2; ++step) first->step(false);
    first->save(path);
    const auto second = test::make_trainer(setup);
    second->load(path);
    for (int step = 0; step < 2; ++step) second->step(false);
    EXPECT_TRUE(test::weights_of(*second) == test::weights_of(*straight)) << kind;
  }
}

/// A file holds whole parameters in the order of the network, so that it does not depend on stages or parts: but the
/// replicas and micro-batches of a run are part of what it trains on.
TEST(ParallelTrainer, CheckpointsGoFromOneKindOfSharingToAnother) {
  ParallelSetup setup = transformer_setup(2);
  setup.replicas = 2;
  const std::string path = testing::TempDir() + "sharing.ckpt";
  const auto whole = test::make_trainer(setup);
  whole->step(false);
  whole->save(path);
  whole->step(false);
  setup.optimizer_parallel = "zero1";
  const auto shared = test::make_trainer(setup);
  shared->load(path);
  shared->step(false);
  EXPECT_TRUE(test::weights_of(*shared) == test::weights_of(*whole));
  setup.shape.micro_batches = 3;
  const auto other = test::make_trainer(setup);
  EXPECT_THROW(other->load(path), Error);
}

TEST(ParallelTrainer, GradientsOfAPipelineAgreeWithDifferenceQuotients) {
  ParallelSetup setup = transformer_setup(2);
  setup.shape.stages = 2;
  const auto trainer = test::make_trainer(setup);
  trainer->step(false);
  const std::vector<GradientSample> samples = trainer->gradient_samples(10);
  EXPECT_EQ(samples.size(), 10);
  for (const GradientSample& sample : samples) EXPECT_NE(sample.verdict, SampleVerdict::differs) << sample.parameter;
}

TEST(ParallelTrainer, SaysWhatItNeedsBeforeItTakesIt) {
  ParallelSetup setup = transformer_setup(4);
  setup.shape.stages = 2;
  setup.options.memory_limit = 1'000'000;
  try {
    static_cast<void>(test::make_trainer(setup));
    FAIL() << "took more than the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "memory");
  }
}

}  // namespace
}  // namespace hcclsim::hccl
