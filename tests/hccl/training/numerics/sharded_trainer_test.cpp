#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/hccl/training/numerics/trained.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Networks whose operators are cut over devices train as on one device: the loss, the norm of the gradient and the
/// weights differ by the order of sums.
namespace hcclsim::hccl {
namespace {

using models::GraphBuilder;
using test::ShardedTraining;
using test::Trained;

void expect_as_on_one_device(const ShardedTraining& training, double tolerance = 2e-5) {
  test::expect_near(test::train(training), test::train(test::alone(training)), tolerance);
}

/// Three linear operators with biases, of 8 samples.
models::Graph perceptron() {
  GraphBuilder net("perceptron", models::Shape{8, 16});
  const auto first = net.relu("relu1", net.linear("fc1", GraphBuilder::input(), 24, true));
  const auto second = net.relu("relu2", net.linear("fc2", first, 12, true));
  const auto head = net.linear("fc3", second, 8, true);
  return std::move(net).finish(head);
}

ShardedTraining perceptron_training(Rank devices) {
  ShardedTraining training{.network = perceptron(), .devices = devices};
  training.options.data = "synthetic-classes:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

ShardedTraining language_training(const char* name, const TransformerSharding& sharding) {
  ShardedTraining training{
      .network = models::make_model(
          {.name = name, .batch = 4, .sequence = 8, .layers = 2, .hidden = 24, .heads = 4, .vocabulary = 32}),
      .devices = sharding.devices()};
  training.strategies = transformer_strategies(training.network, sharding);
  training.options.data = "synthetic:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

TEST(ShardedTrainer, BatchParallelTrainsAsOneDevice) {
  for (const Rank devices : {2U, 4U, 8U}) expect_as_on_one_device(perceptron_training(devices));
}

/// Outputs of the first product are cut, then the sum of the second one: an all_reduce, and the bias behind it.
TEST(ShardedTrainer, CutProductsTrainAsOneDevice) {
  for (const std::uint32_t data : {1U, 2U}) {
    for (const std::uint32_t model : {2U, 4U}) {
      ShardedTraining training = perceptron_training(data * model);
      training.strategies = {{"fc1", {.inputs = {{data, 1}, {model, 1}}}},
                             {"relu1", {.inputs = {{data, model}}}},
                             {"fc2", {.inputs = {{data, model}, {1, model}}}},
                             {"fc3", {.inputs = {{data, 1}, {model, 1}}}}};
      SCOPED_TRACE(fmt::format("data {}, model {}", data, model));
      expect_as_on_one_device(training);
    }
  }
}

/// The classes are cut: maxima and sums of the rows are those of the group.
TEST(ShardedTrainer, LossesOfCutClassesTrainAsOneDevice) {
  for (const float smoothing : {0.0F, 0.1F}) {
    ShardedTraining training = perceptron_training(4);
    training.strategies = {{"fc3", {.inputs = {{2, 1}, {2, 1}}}}, {"loss", {.inputs = {{2, 2}}}}};
    training.options.computation.label_smoothing = smoothing;
    expect_as_on_one_device(training);
  }
}

/// Layouts that change between operators: all_gather, all_to_all, slices.
TEST(ShardedTrainer, RedistributedTensorsTrainAsOneDevice) {
  for (const bool alltoall : {false, true}) {
    ShardedTraining training = perceptron_training(4);
    training.strategies = {{"fc1", {.inputs = {{1, 1}, {4, 1}}}},
                           {"relu1", {.inputs = {{4, 1}}}},
                           {"fc2", {.inputs = {{1, 2}, {2, 2}}}},
                           {"relu2", {.inputs = {{2, 2}}}},
                           {"fc3", {.inputs = {{4, 1}, {1, 1}}}}};
    training.sharding.enable_alltoall = alltoall;
    expect_as_on_one_device(training);
  }
}

TEST(ShardedTrainer, TransformersTrainAsOneDevice) {
  for (const char* const name : {"gpt2-small", "llama2-7b", "qwen3-0.6b"}) {
    for (const TransformerSharding& sharding :
         {TransformerSharding{.model = 2}, TransformerSharding{.data = 2, .model = 2},
          TransformerSharding{.data = 2, .model = 4},
          TransformerSharding{.model = 2, .sequence_parallel = true, .vocabulary_parallel = true},
          TransformerSharding{.data = 2, .model = 2, .sequence_parallel = true},
          TransformerSharding{.data = 2, .context = 2, .model = 2}}) {
      SCOPED_TRACE(
          fmt::format("{}: data {}, context {}, model {}", name, sharding.data, sharding.context, sharding.model));
      expect_as_on_one_device(language_training(name, sharding));
    }
  }
}

/// Two convolutions with their norms, and a pool over all pixels, of 8 images of 4 × 8 × 8.
ShardedTraining image_training(Rank devices) {
  GraphBuilder net("images", models::Shape{8, 4, 8, 8});
  const auto first = net.convolution("conv1", GraphBuilder::input(), {.channels = 8, .window = {3, 1, 1}});
  const auto second =
      net.convolution("conv2", net.relu("relu1", net.batch_norm("bn1", first)), {.channels = 8, .window = {3, 1, 1}});
  const auto main = net.relu("relu2", net.add("add", net.batch_norm("bn2", second), first));
  const auto pooled = net.flatten("flatten", net.average_pool("pool", main, 1));
  const auto head = net.linear("fc", pooled, 4, true);
  ShardedTraining training{.network = std::move(net).finish(head), .devices = devices};
  training.options.data = "synthetic:96";
  training.options.learning_rate = device::LearningRate(0.05);
  return training;
}

TEST(ShardedTrainer, ImagesInPartsTrainAsOneDevice) {
  struct Case {
    const char* what;
    Rank devices;
    std::uint32_t batch, channels, height, width;
  };
  for (const Case& one : {Case{"batch", 4, 4, 1, 1, 1}, Case{"channels", 2, 1, 2, 1, 1}, Case{"height", 2, 1, 1, 2, 1},
                          Case{"width", 2, 1, 1, 1, 2}, Case{"all", 8, 2, 1, 2, 2}}) {
    SCOPED_TRACE(one.what);
    ShardedTraining training = image_training(one.devices);
    const Cuts images{one.batch, one.channels, one.height, one.width};
    const Cuts unmixed{one.batch, 1, one.height, one.width};
    for (const char* const conv : {"conv1", "conv2"}) {
      training.strategies[conv] = {.inputs = {unmixed, {one.channels, 1, 1, 1}}};
    }
    for (const char* const norm : {"bn1", "bn2"}) {
      training.strategies[norm] = {.inputs = {images, {one.channels}, {one.channels}}};
    }
    for (const char* const relu : {"relu1", "relu2"}) training.strategies[relu] = {.inputs = {images}};
    training.strategies["add"] = {.inputs = {images, images}};
    expect_as_on_one_device(training, 1e-4);
  }
}

TEST(ShardedTrainer, StagesMicroBatchesAndRecomputationGoTogether) {
  for (const char* const recompute : {"none", "full"}) {
    for (const char* const optimizer : {"off", "zero1", "zero2", "zero3"}) {
      ShardedTraining training = language_training("llama2-7b", {.data = 2, .model = 2, .vocabulary_parallel = true});
      training.shape = {.stages = 2, .micro_batches = 4};
      training.recompute = recompute;
      training.optimizer_parallel = optimizer;
      SCOPED_TRACE(fmt::format("recompute {}, optimizer {}", recompute, optimizer));
      expect_as_on_one_device(training);
    }
  }
}

// Four devices in `rows` parts of the rows: each part of the loss is computed by 4 / rows devices, whose gradients are
// divided by that. Without the division they are that many times as large, and so is their norm, whatever else is done.
TEST(ShardedTrainer, RepeatedLossesAreDivided) {
  for (const std::uint32_t rows : {1U, 2U, 4U}) {
    for (const auto& [stages, micro_batches] : {std::pair(1U, 1U), std::pair(1U, 2U), std::pair(2U, 2U)}) {
      for (const char* const sharing : {"off", "zero2"}) {
        SCOPED_TRACE(fmt::format("{} parts, {} stages, {} micro-batches, {}", rows, stages, micro_batches, sharing));
        ShardedTraining training = language_training("llama2-7b", {.data = 4});
        training.strategies["loss"] = {.inputs = {{rows, 1, 1}}};
        training.shape = {.stages = stages, .micro_batches = micro_batches};
        training.optimizer_parallel = sharing;
        const double alone = test::steps_of(*test::make_trainer(test::alone(training)), 1).norms.front();
        EXPECT_NEAR(test::steps_of(*test::make_trainer(training), 1).norms.front(), alone, 2e-5 * alone);
        training.sharding.loss_repeated_mean = false;
        const double times = 4.0 / rows;
        EXPECT_NEAR(test::steps_of(*test::make_trainer(training), 1).norms.front(), times * alone,
                    2e-5 * times * alone);
      }
    }
  }
}

TEST(ShardedTrainer, RecomputationAndWorkersChangeNoBit) {
  ShardedTraining training = language_training("llama2-7b", {.data = 2, .model = 2, .sequence_parallel = true});
  training.shape.micro_batches = 2;
  training.options.workers = 1;
  const Trained one = train(training);
  training.options.workers = 3;
  EXPECT_TRUE(train(training) == one);
  training.recompute = "full";
  EXPECT_TRUE(train(training) == one);
}

/// Weights of one device, cut: the parts have the bits of the whole.
TEST(ShardedTrainer, StartsFromThePartsOfOneDevice) {
  ShardedTraining training = language_training("gpt2-small", {.data = 2, .model = 4, .vocabulary_parallel = true});
  const auto cut = test::make_trainer(training);
  training.devices = 1;
  training.strategies.clear();
  const auto whole = test::make_trainer(training);
  EXPECT_TRUE(test::weights_of(*cut) == test::weights_of(*whole));
}

TEST(ShardedTrainer, GoesOnFromACheckpointBitByBit) {
  ShardedTraining training = language_training("llama2-7b", {.data = 2, .model = 2});
  training.options.optimizer.rule = models::Optimizer::adam;
  const std::string path = testing::TempDir() + "sharded.ckpt";
  const auto straight = test::make_trainer(training);
  for (int step = 0; step < 4; ++step) straight->step(false);
  const auto first = test::make_trainer(training);
  for (int step = 0; step < 2; ++step) first->step(false);
  first->save(path);
  const auto second = test::make_trainer(training);
  second->load(path);
  for (int step = 0; step < 2; ++step) second->step(false);
  EXPECT_TRUE(test::weights_of(*second) == test::weights_of(*straight));
}

/// Sums in half precision are rounded; what is only moved is not.
TEST(ShardedTrainer, TimedTypesRoundSumsAlone) {
  ShardedTraining training = language_training("llama2-7b", {.data = 2, .model = 2});
  training.precision = models::precision_of(models::Amp::o2);
  expect_as_on_one_device(training, 2e-2);
  ShardedTraining moved = perceptron_training(2);
  moved.strategies = {{"fc1", {.inputs = {{1, 1}, {2, 1}}}}, {"fc2", {.inputs = {{2, 1}, {1, 1}}}}};
  const Trained exact = train(moved);
  moved.precision = models::precision_of(models::Amp::o2);
  test::expect_near(train(moved), exact, 2e-3);  // of gradients alone
}

/// With fp32 on the wire nothing is rounded: whatever types the rest is timed in, it trains as one device.
TEST(ShardedTrainer, SumsOfFp32AreNotRounded) {
  for (const bool sequence_parallel : {false, true}) {
    ShardedTraining training =
        language_training("llama2-7b", {.data = 2, .model = 2, .sequence_parallel = sequence_parallel});
    training.recompute = "full";
    training.precision = models::precision_of(models::Amp::o2);
    const double alone = test::train(test::alone(training)).losses.front();
    EXPECT_GT(std::abs(test::train(training).losses.front() - alone), 1e-5 * alone);
    training.fp32_sums = true;
    expect_as_on_one_device(training);
  }
}

/// Reduced gradients of whole parameters.
test::Tensors gradients_of(const ShardedTraining& training) {
  const auto trainer = test::make_trainer(training);
  trainer->step(false);
  test::Tensors gradients;
  for (std::size_t stage = 0; stage < trainer->stages(); ++stage) {
    const TrainedStage& of = trainer->stage(stage);
    for (std::size_t slot = 0; slot < of.computation().parameters().size(); ++slot) {
      gradients.push_back(of.read_gradient(slot));
    }
  }
  return gradients;
}

// R1.12: gradients_mean multiplies each gradient by 1/n, n: the ranks of its own mirror. Of two parts of the samples
// and two of the features, a part of a weight that is cut is on two ranks, a norm on all four.
TEST(ShardedTrainer, MirrorsDivideByTheirRanks) {
  for (const char* const sharing : {"off", "zero2"}) {
    for (const std::uint32_t stages : {1U, 2U}) {
      ShardedTraining training = language_training("llama2-7b", {.data = 2, .model = 2});
      training.shape = {.stages = stages, .micro_batches = 2};
      training.optimizer_parallel = sharing;
      const test::Tensors sums = gradients_of(training);
      training.options.mirrors_mean = true;
      const test::Tensors means = gradients_of(training);
      const auto trainer = test::make_trainer(training);
      std::size_t number = 0;
      std::set<std::size_t> sizes;
      for (std::size_t stage = 0; stage < trainer->stages(); ++stage) {
        const TrainedStage& of = trainer->stage(stage);
        for (std::size_t slot = 0; slot < of.computation().parameters().size(); ++slot, ++number) {
          const std::size_t ranks = of.parts().holders(slot).front().size();
          sizes.insert(ranks);
          for (std::size_t i = 0; i < sums[number].size(); ++i) {
            EXPECT_EQ(means[number][i], sums[number][i] / static_cast<float>(ranks));
          }
        }
      }
      EXPECT_EQ(sizes, (std::set<std::size_t>{2, 4}));
    }
  }
}

// R1.19: two devices compute the same loss with the same weights. With half of it on each, their sum is the gradient of
// one device, without it twice as much; gradients_mean halves that once more, and so does PyNative mode with
// full_batch.
TEST(ShardedTrainer, MeansOfTwoDevicesWithTheSameLoss) {
  ShardedTraining training = perceptron_training(2);
  for (const char* const name : {"fc1", "fc2", "fc3"}) training.strategies[name] = {.inputs = {{1, 1}, {1, 1}}};
  for (const char* const name : {"relu1", "relu2", "loss"}) training.strategies[name] = {.inputs = {{1, 1}}};
  const double alone = test::steps_of(*test::make_trainer(test::alone(training)), 1).norms.front();
  for (const bool repeated_mean : {true, false}) {
    for (const bool mean : {false, true}) {
      for (const bool again : {false, true}) {
        training.sharding.loss_repeated_mean = repeated_mean;
        training.options.mirrors_mean = mean;
        training.options.mean_again = again;
        const double expected = alone * (repeated_mean ? 1 : 2) / (mean ? 2 : 1) / (again ? 2 : 1);
        EXPECT_NEAR(test::steps_of(*test::make_trainer(training), 1).norms.front(), expected, 1e-5 * expected);
      }
    }
  }
  training = perceptron_training(2);
  training.options.added_losses = 2;
  EXPECT_NEAR(test::steps_of(*test::make_trainer(training), 1).norms.front(), 2 * alone, 2e-5 * alone);
}

/// LARS and LAMB take the norms of what a rank keeps.
TEST(ShardedTrainer, NormsOfPartsScaleTheirUpdates) {
  for (const models::Optimizer rule : {models::Optimizer::lars, models::Optimizer::lamb}) {
    ShardedTraining training = perceptron_training(2);
    training.options.optimizer.rule = rule;
    training.optimizer_parallel = "on:threshold=0";
    const auto trainer = test::make_trainer(training);
    const test::Tensors before = test::weights_of(*trainer);
    trainer->step(false);
    const test::Tensors after = test::weights_of(*trainer);
    const TrainedStage& stage = trainer->stage(0);
    device::WorkerPool pool(1);
    for (std::size_t slot = 0; slot < stage.computation().parameters().size(); ++slot) {
      const device::ParameterSlot& place = stage.computation().parameters()[slot];
      const std::vector<float> gradient = stage.read_gradient(slot);
      const std::size_t half = gradient.size() / 2;
      for (const std::size_t first : {std::size_t{0}, half}) {
        device::ParameterSlot part = place;
        part.offset = 0;
        part.elements = half;
        device::OptimizerState state(training.options.optimizer, {&part, 1});
        std::vector<float> weights(before[place.parameter].begin() + static_cast<std::ptrdiff_t>(first),
                                   before[place.parameter].begin() + static_cast<std::ptrdiff_t>(first + half));
        state.step(pool, weights, std::span(gradient).subspan(first, half), 1, 0.05);
        for (std::size_t i = 0; i < half; ++i) {
          EXPECT_NEAR(weights[i], after[place.parameter][first + i], 1e-6) << place.name << ' ' << first + i;
        }
      }
    }
  }
}

/// Another batch than the timed one has collectives of other sizes.
TEST(ShardedTrainer, ComputesOtherShapesThanTheTimedOne) {
  ShardedTraining training = language_training("llama2-7b", {.data = 2, .model = 2});
  models::ModelOptions larger{
      .name = "llama2-7b", .batch = 8, .sequence = 8, .layers = 2, .hidden = 24, .heads = 4, .vocabulary = 32};
  const Trained small = train(training);
  const models::Graph computed = std::exchange(training.network, models::make_model(larger));
  training.strategies = transformer_strategies(training.network, {.data = 2, .model = 2});
  EXPECT_TRUE(test::steps_of(*test::make_trainer(training, &computed)) == small);
}

}  // namespace
}  // namespace hcclsim::hccl
