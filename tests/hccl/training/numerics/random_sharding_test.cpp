#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/training/random_strategies.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Networks whose operators are cut at random train as on one device: gradients on copies are addends, and what is put
/// between operators undoes itself in the backward pass.
namespace hcclsim::hccl {
namespace {

void expect_random_strategies_train(const models::Graph& network, const std::string& data, std::uint32_t seed) {
  std::mt19937 random(seed);
  test::ShardedTraining training;
  training.network = network;
  training.options.data = data;
  training.options.learning_rate = device::LearningRate(0.05);
  const test::Trained expected = test::train(training);
  int trained = 0;
  for (int round = 0; round < 16; ++round) {
    training.devices = 2U << random() % 3;
    training.strategies = test::random_strategies(network, training.devices, random);
    training.sharding.enable_alltoall = round % 2 == 0;
    std::string what = std::to_string(training.devices) + " devices:";
    for (const auto& [name, strategy] : training.strategies) what += " " + name + " " + to_string(strategy);
    SCOPED_TRACE(what);
    try {
      (void)shard_graph(network, training.strategies, training.devices, training.sharding);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "strategy");  // a tied table, or borders of images
      continue;
    }
    test::expect_near(test::train(training), expected, 1e-4);
    ++trained;
  }
  EXPECT_GE(trained, 4);
}

TEST(RandomSharding, TokensTrainAsOnOneDevice) {
  expect_random_strategies_train(test::tokens_network(), "synthetic:96", 11);
}

TEST(RandomSharding, ImagesTrainAsOnOneDevice) {
  expect_random_strategies_train(test::images_network(), "synthetic:96", 12);
}

}  // namespace
}  // namespace hcclsim::hccl
