#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/graph_builder.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/training/random_strategies.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Tables in uneven parts or on hosts, regions of the batch that devices read, and images cut along both axes train as
/// on one device, also in pipelines, with shared parameters, several micro-batches and recomputation.
namespace hcclsim::hccl {
namespace {

using models::GraphBuilder;
using test::ShardedTraining;
using test::Trained;

/// Three steps.
Trained three_steps(const ShardedTraining& training) {
  const auto trainer = test::make_trainer(training);
  Trained result;
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
}

void expect_like_one_device(const ShardedTraining& training) {
  ShardedTraining one = training;
  one.devices = 1;
  one.strategies.clear();
  one.sharding = {};
  one.shape.stages = 1;
  one.optimizer_parallel = "off";
  one.recompute = "none";
  test::expect_near(three_steps(training), three_steps(one), 2e-5);
}

/// Two layers behind a table of 64 rows, 8 samples of 8 categories; of part k of the positions are the rows of part k.
models::Graph recommender(const std::vector<std::uint32_t>& parts) {
  GraphBuilder net = GraphBuilder::of_tokens("recommender", 8, 8);
  auto x = net.token_embedding("table", GraphBuilder::input(), 64, 8);
  x = net.join_rows("join", x);
  net.begin_layer();
  x = net.relu("relu1", net.linear("fc1", x, 32, true));
  net.begin_layer();
  x = net.relu("relu2", net.linear("fc2", x, 16, true));
  net.end_layers();
  const auto last = net.linear("head", x, 4, true);
  models::Graph graph = std::move(net).finish(last);
  graph.operators[1].row_parts = parts;
  return graph;
}

ShardedTraining split_training() {
  ShardedTraining training;
  training.network = recommender({10, 20, 30, 4});
  training.devices = 4;
  training.strategies = {{"table", {.inputs = {{4, 1}, {1, 4}}, .manual_split = {10, 20, 30, 4}}},
                         {"fc1", {.inputs = {{2, 1}, {2, 1}}}},
                         {"fc2", {.inputs = {{2, 2}, {1, 2}}}}};
  training.options.data = "synthetic:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

TEST(SplitTableTrainer, TrainsLikeOneDevice) {
  expect_like_one_device(split_training());
  ShardedTraining training = split_training();
  training.sharding.enable_alltoall = true;
  training.options.optimizer.rule = models::Optimizer::adamw;
  training.options.optimizer.weight_decay = 0.01;
  expect_like_one_device(training);
}

TEST(SplitTableTrainer, WithStagesMicroBatchesSharingAndRecomputation) {
  ShardedTraining training = split_training();
  training.shape.stages = 2;
  training.shape.micro_batches = 4;
  training.optimizer_parallel = "on:threshold=0";
  training.recompute = "full";
  expect_like_one_device(training);
}

TEST(SplitTableTrainer, AnotherTokenIsAnError) {
  ShardedTraining training = split_training();
  training.strategies.at("table").manual_split = {20, 10, 30, 4};  // the data are of 10, 20, 30, 4
  training.options.dataset = models::open_dataset("synthetic:96", training.network, 1);
  EXPECT_THAT(test::refusal("tokens", [&] { (void)three_steps(training); }), testing::HasSubstr("manual_split"));
}

TEST(HostTableTrainer, TrainsLikeOneDevice) {
  for (const std::uint32_t stages : {1U, 2U}) {
    ShardedTraining training = split_training();
    training.network.operators[1].row_parts.clear();
    training.strategies["table"] = {.inputs = {{4, 1}, {1, 1}}, .on_host = true};
    training.shape.stages = stages;
    training.shape.micro_batches = 2 * stages;
    training.options.clip_norm = 0.5;
    SCOPED_TRACE(fmt::format("{} stages", stages));
    expect_like_one_device(training);
  }
}

ShardedTraining images_training(Rank devices) {
  ShardedTraining training;
  training.network = test::images_network();
  training.devices = devices;
  training.options.data = "synthetic:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

TEST(GridTrainer, ImagesCutAlongBothAxesTrainLikeOneDevice) {
  for (const auto& [height, width] : {std::pair{2U, 2U}, {4U, 2U}, {2U, 4U}}) {
    ShardedTraining training = images_training(height * width);
    training.strategies = {{"conv1", {.inputs = {{1, 1, height, width}, {1, 1, 1, 1}}}},
                           {"bn1", {.inputs = {{1, 1, height, width}, {1}, {1}}}},
                           {"relu1", {.inputs = {{1, 1, height, width}}}},
                           {"pool", {.inputs = {{1, 1, height, width}}}}};
    if (height == 2 && width == 2) training.strategies["conv2"] = {.inputs = {{1, 1, 2, 2}, {1, 1, 1, 1}}};
    SCOPED_TRACE(fmt::format("{} x {}", height, width));
    expect_like_one_device(training);
  }
}

// Every device reads a quarter of the height of every image, all images, or images of its own.
TEST(SlicedBatchTrainer, ReadsWhatItIsTold) {
  for (const Cuts& slices :
       {Cuts{1, 1, 4, 1}, Cuts{1, 1, 1, 1}, Cuts{4, 1, 1, 1}, Cuts{1, 1, 2, 1}, Cuts{2, 1, 1, 1}}) {
    for (const bool cut : {true, false}) {
      ShardedTraining training = images_training(4);
      if (cut) training.strategies = {{"conv1", {.inputs = {{1, 1, 4, 1}, {1, 1, 1, 1}}}}};
      training.sharding.dataset = slices;
      training.sharding.enable_alltoall = cut;
      training.shape.micro_batches = 2;
      SCOPED_TRACE(fmt::format("slices {}, {}", slices[0] * 100 + slices[2], cut));
      expect_like_one_device(training);
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
