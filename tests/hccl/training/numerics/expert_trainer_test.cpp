#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "hccl/parallel/sharding/presets.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/sharded_training.hpp"

/// Experts that ranks share train as on one device, also where rows are dropped: the loss, the norm of the gradient and
/// the weights differ by the order of sums.
namespace hcclsim::hccl {
namespace {

using test::ShardedTraining;

ShardedTraining expert_training(const TransformerSharding& sharding, Rank experts, std::optional<double> capacity) {
  ShardedTraining training{.network = models::make_model({.name = "tinymoe", .batch = 8, .capacity = capacity}),
                           .devices = sharding.devices()};
  if (sharding.model > 1) training.strategies = transformer_strategies(training.network, sharding);
  training.experts = experts;
  training.options.data = "synthetic:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

void expect_as_alone(const ShardedTraining& training) {
  test::expect_near(test::train(training), test::train(test::alone(training)), 2e-5);
}

TEST(ExpertTrainer, SharedExpertsTrainAsOnOneDevice) {
  for (const Rank devices : {2U, 4U, 8U}) {
    for (Rank experts = 1; experts <= devices; experts *= 2) {
      SCOPED_TRACE(fmt::format("{} devices, {} share experts", devices, experts));
      expect_as_alone(expert_training({.data = devices}, experts, {}));
    }
  }
}

TEST(ExpertTrainer, RowsAreDroppedAsOnOneDevice) {
  for (const double capacity : {0.5, 1.0}) {
    SCOPED_TRACE(fmt::format("capacity {}", capacity));
    expect_as_alone(expert_training({.data = 4}, 4, capacity));
    expect_as_alone(expert_training({.data = 4}, 2, capacity));
  }
}

TEST(ExpertTrainer, BesideModelParallel) {
  expect_as_alone(expert_training({.data = 2, .model = 2}, 2, {}));
  expect_as_alone(expert_training({.data = 4, .model = 2}, 2, 1.0));
}

TEST(ExpertTrainer, WithRecomputationMicroBatchesAndSharedParameters) {
  ShardedTraining training = expert_training({.data = 4}, 2, 1.0);
  training.recompute = "full";
  expect_as_alone(training);
  training.shape.micro_batches = 2;
  training.optimizer_parallel = "zero2";
  expect_as_alone(training);
}

TEST(ExpertTrainer, RefusesDroplessExperts) {
  ShardedTraining training = expert_training({.data = 2}, 2, {});
  training.network = models::make_model({.name = "tinymoe", .batch = 2, .dropless = true});
  EXPECT_NE(test::refusal("numerics", [&] { static_cast<void>(test::make_trainer(training)); })
                .find("give a capacity that is enough for all"),
            std::string::npos);
}

}  // namespace
}  // namespace hcclsim::hccl
