#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/random_strategies.hpp"
#include "tests/support/sharded_training.hpp"

/// Random small networks with random strategies for each operator, on up to 8 devices and with what goes along in
/// training, against one device.
namespace hcclsim::hccl {
namespace {

using models::GraphBuilder;

class RandomTraining {
 public:
  explicit RandomTraining(unsigned seed) : engine_(seed) {}

  test::ShardedTraining make() {
    test::ShardedTraining training{.network = pick(2) == 0 ? language() : rows()};
    training.devices = Rank{2} << pick(3);
    training.strategies = strategies(training.network, training.devices);
    training.sharding.enable_alltoall = pick(2) == 0;
    training.shape.micro_batches = 1 + pick(3);
    training.recompute = pick(3) == 0 ? "full" : "none";
    training.optimizer_parallel = std::array{"off", "off", "zero1", "zero2", "zero3"}.at(pick(5));
    training.options.data = "synthetic:96";
    training.options.learning_rate = device::LearningRate(0.02);
    return training;
  }

 private:
  std::uint32_t pick(std::uint32_t count) { return static_cast<std::uint32_t>(engine_() % count); }

  /// Linear operators with what stands between them.
  models::Graph rows() {
    GraphBuilder net("rows", models::Shape{8, 16});
    models::Value at = GraphBuilder::input();
    const std::uint32_t layers = 2 + pick(3);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      net.begin_layer();
      const std::string name = fmt::format("layer{}", layer);
      const std::uint32_t width = std::uint32_t{8} << pick(2);
      const models::Value before = net.linear(name + ".fc", at, width, pick(2) == 0);
      models::Value made = before;
      switch (pick(5)) {
        case 0:
          made = net.relu(name + ".relu", made);
          break;
        case 1:
          made = net.gelu(name + ".gelu", made);
          break;
        case 2:
          made = net.layer_norm(name + ".norm", made);
          break;
        case 3:
          made = net.dropout(name + ".dropout", net.tanh(name + ".tanh", made), 0.25F);
          break;
        default:
          made = net.add(name + ".add", net.relu(name + ".relu", made), before);
          break;
      }
      at = made;
    }
    net.end_layers();
    const auto head = net.linear("head", at, 8, true);
    return std::move(net).finish(head);
  }

  models::Graph language() {
    return models::make_model({.name = pick(2) == 0 ? "gpt2-small" : "llama2-7b",
                               .batch = 4,
                               .sequence = 8,
                               .layers = 2,
                               .hidden = 24,
                               .heads = 4,
                               .vocabulary = 32});
  }

  /// Such that fit together: a table that two operators read may be cut in one way only.
  StrategyMap strategies(const models::Graph& network, Rank devices) {
    while (true) {
      StrategyMap drawn = test::random_strategies(network, devices, engine_);
      try {
        static_cast<void>(shard_graph(network, drawn, devices));
        return drawn;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), "strategy");
      }
    }
  }

  std::mt19937 engine_;
};

class RandomTrainings : public testing::TestWithParam<unsigned> {};

TEST_P(RandomTrainings, TrainAsOneDevice) {
  const test::ShardedTraining training = RandomTraining(GetParam()).make();
  std::string strategies;
  for (const auto& [name, strategy] : training.strategies)
    strategies += fmt::format("{}: {}\n", name, to_string(strategy));
  SCOPED_TRACE(fmt::format("{} on {} devices, {} micro-batches, recompute {}, optimizer {}\n{}", training.network.title,
                           training.devices, training.shape.micro_batches, training.recompute,
                           training.optimizer_parallel, strategies));
  const auto run = [](const test::ShardedTraining& how) {
    const auto trainer = test::make_trainer(how);
    test::Trained result;
    for (int step = 0; step < 3; ++step) {
      const IterationFigures figures = trainer->step(true);
      EXPECT_LE(trainer->reduction_check().worst_ratio, 1);
      result.losses.push_back(figures.loss);
      result.norms.push_back(figures.gradient_norm);
      result.accuracies.push_back(figures.accuracy);
    }
    EXPECT_EQ(trainer->replica_check().differing_bits, 0);
    result.weights = test::weights_of(*trainer);
    return result;
  };
  test::ShardedTraining whole = training;
  whole.devices = 1;
  whole.strategies.clear();
  whole.optimizer_parallel = "off";
  whole.recompute = "none";
  test::expect_near(run(training), run(whole), 5e-5);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrainings, testing::Range(1U, 25U));

}  // namespace
}  // namespace hcclsim::hccl
