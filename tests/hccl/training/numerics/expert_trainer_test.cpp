#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/sharding/presets.hpp"
#include "models/dropless.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Experts that ranks share train as on one device, also where rows are dropped: the loss, the norm of the gradient and
/// the weights differ by the order of sums.
namespace hcclsim::hccl {
namespace {

using test::ShardedTraining;
using test::Trained;

ShardedTraining expert_training(const TransformerSharding& sharding, Rank experts, std::optional<double> capacity) {
  ShardedTraining training{.network = models::make_model({.name = "tinymoe", .batch = 8, .capacity = capacity}),
                           .devices = sharding.devices()};
  if (sharding.devices() > sharding.data) training.strategies = transformer_strategies(training.network, sharding);
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

// 8 experts of which each row takes 2: four times the even share is a place for every row.
TEST(ExpertTrainer, DroplessExpertsHavePlaceForAll) {
  ShardedTraining training = expert_training({.data = 4}, 4, 4.0);
  const Trained with_capacity = test::train(training);
  training.network = models::make_model({.name = "tinymoe", .batch = 8, .dropless = true});
  const models::Graph computed = models::with_places_for_all(training.network);
  EXPECT_TRUE(test::steps_of(*test::make_trainer(training, &computed)) == with_capacity);
  training.network = computed;
  expect_as_alone(training);
}

// The timed load is uneven, the rows are those that the gates give: each way carries 2 rows of 32 features for each of
// 8 · 16 tokens, in parts that differ, and in other ones in the next layer's or step's exchange.
TEST(ExpertTrainer, RowsOfDroplessExpertsGoInUnevenParts) {
  ShardedTraining training = expert_training({.data = 4}, 4, {});
  training.network = models::make_model({.name = "tinymoe", .batch = 8, .dropless = true});
  training.expert_skew = 1;
  const models::Graph computed = models::with_places_for_all(training.network);
  for (const DataType type : {DataType::fp32, DataType::fp16}) {
    if (type == DataType::fp16) training.precision = models::precision_of(models::Amp::o2);
    std::vector<std::vector<std::uint64_t>> parts;
    training.options.make_schedule = [&parts](const Communicator& group, const Operation& operation) {
      if (!operation.counts.empty()) parts.push_back(operation.counts.counts());
      return test::ring_or_pairs(group, operation);
    };
    const Trained trained = test::steps_of(*test::make_trainer(training, &computed));
    ASSERT_EQ(parts.size(), 3U * 4);  // steps; ways there and back in either pass
    for (const std::vector<std::uint64_t>& of_call : parts) {
      EXPECT_EQ(std::accumulate(of_call.begin(), of_call.end(), std::uint64_t{0}), 8U * 16 * 2 * 32);
      EXPECT_GT(std::ranges::max(of_call), 16U * 32);  // 2 · 16 · 2 rows of a rank for 4 ranks
    }
    EXPECT_NE(parts.front(), parts.back());
    ShardedTraining one = training;
    one.network = computed;
    if (type == DataType::fp32) test::expect_near(trained, test::train(test::alone(one)), 2e-5);
  }
}

TEST(ExpertTrainer, BesideContextParallel) {
  ShardedTraining training = expert_training({.data = 2, .context = 2}, 2, 1.0);
  for (const bool alltoall : {false, true}) {
    training.sharding.enable_alltoall = alltoall;
    expect_as_alone(training);
  }
}

// Calls of shared operators follow each other in the order of the graph, with the same numbers.
TEST(ExpertTrainer, SharedCommunicationChangesNoBit) {
  ShardedTraining training = expert_training({.data = 2, .model = 2}, 2, {});
  training.shape.micro_batches = 2;
  const Trained apart = test::train(training);
  training.shares_communication = true;
  EXPECT_TRUE(test::train(training) == apart);
}

TEST(ExpertTrainer, RefusesDroplessExpertsWithoutPlaces) {
  ShardedTraining training = expert_training({.data = 2}, 2, {});
  training.network = models::make_model({.name = "tinymoe", .batch = 2, .dropless = true});
  EXPECT_NE(test::refusal("numerics", [&] { static_cast<void>(test::make_trainer(training)); })
                .find("any of its 16 rows may come to an expert, which has 4 places"),
            std::string::npos);
}

TEST(ExpertTrainer, InStages) {
  ShardedTraining training = expert_training({.data = 4}, 2, {});
  training.network = models::make_model({.name = "mixtral-8x7b",
                                         .batch = 8,
                                         .sequence = 8,
                                         .layers = 2,
                                         .hidden = 32,
                                         .heads = 8,
                                         .vocabulary = 32,
                                         .capacity = 1});
  training.shape = {.stages = 2, .micro_batches = 2};
  expect_as_alone(training);
  training.recompute = "full";
  expect_as_alone(training);
  for (const char* const sharing : {"zero1", "zero2", "zero3", "on:threshold=0"}) {
    SCOPED_TRACE(sharing);
    training.optimizer_parallel = sharing;
    expect_as_alone(training);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
