#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/programs.hpp"

/// What micro-batches, shared parameters and recomputing make of a program.
namespace hcclsim::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Program lowered(const Graph& graph, LoweringOptions options) {
  Program program = lower(graph, options);
  add_updates(program, {.precision = options.precision, .optimizer = Optimizer::adam, .clear = options.accumulate});
  return program;
}

std::vector<std::string> kernels(const Program& program, std::string_view part) {
  std::vector<std::string> names;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.name.find(part) != std::string::npos) names.push_back(kernel.name);
  }
  return names;
}

Graph perceptron() { return make_model({.name = "mlp:8,6,4", .batch = 2}); }

TEST(Accumulation, AddsUpEveryGradient) {
  const Program program = lowered(perceptron(), {.accumulate = true});
  EXPECT_THAT(kernels(program, "accumulate"), ElementsAre("fc2.bias:accumulate", "fc2.weight:accumulate",
                                                          "fc1.bias:accumulate", "fc1.weight:accumulate"));
  EXPECT_THAT(kernels(program, "clear"), testing::SizeIs(4));
  const auto sum = std::ranges::find(program.kernels, "fc1.weight:accumulate", &Kernel::name);
  EXPECT_EQ(sum->read, 2U * 48 * 4);
  EXPECT_EQ(sum->written, 48U * 4);
  EXPECT_EQ(test::gradient_of(program, "fc1.weight").kernel, static_cast<std::uint32_t>(sum - program.kernels.begin()));
  // The micro-batch's gradient is alive until it is added; the sums are there for the whole step.
  EXPECT_EQ(program.gradient_bytes, (48U + 6 + 24 + 4) * 4);
  for (const Kernel& kernel : program.kernels) {
    EXPECT_EQ(kernel.launched == Launched::with_first, kernel.name.ends_with(":cast")) << kernel.name;
  }
}

TEST(Accumulation, GradientsAreCastWithTheLastMicroBatch) {
  const Program program = lowered(perceptron(), {.communication = DataType::fp16, .accumulate = true});
  for (const Kernel& kernel : program.kernels) {
    EXPECT_EQ(kernel.launched == Launched::with_last, kernel.name.ends_with("gradient_cast")) << kernel.name;
  }
}

Program synced(Amp amp, GradientSync sync, bool accumulate = false) {
  return lowered(perceptron(), {.precision = precision_of(amp), .sync = sync, .accumulate = accumulate});
}

std::vector<DataType> gradient_types(const Program& program) {
  std::vector<DataType> types;
  for (const char* const name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
    types.push_back(test::gradient_of(program, name).dtype);
  }
  return types;
}

using enum DataType;

// Parameters of fp32 have gradients of fp32, whatever they are cast to before they are used.
TEST(GradientSync, GradientsHaveTheTypeOfTheirParameters) {
  const Program program = synced(Amp::o2, {});
  EXPECT_THAT(gradient_types(program), ElementsAre(fp32, fp32, fp32, fp32));
  EXPECT_THAT(kernels(program, "gradient_cast"), testing::IsEmpty());
  EXPECT_EQ(program.gradient_type_text(), "fp32");
  EXPECT_THAT(gradient_types(synced(Amp::o3, {})), ElementsAre(fp16, fp16, fp16, fp16));
}

// Weights of products are cast, biases are not. The cast's backward pass follows the reduction.
TEST(GradientSync, GradientsOfCastParametersAreReducedAsUsed) {
  const Program program = synced(Amp::o2, {.as_used = true});
  EXPECT_THAT(gradient_types(program), ElementsAre(fp16, fp32, fp16, fp32));
  EXPECT_EQ(program.gradient_type_text(), "fp32 and fp16");
  EXPECT_TRUE(program.has_several_gradient_types());
  EXPECT_THAT(kernels(program, "gradient_cast"), testing::IsEmpty());
  EXPECT_EQ(program.gradient_bytes, (48U + 24) * 2 + (6 + 4) * 4);
  EXPECT_THAT(program.gradient_sizes(), testing::UnorderedElementsAre(96, 24, 48, 16));
  const std::vector<Kernel> update = test::kernels_of(program, "fc1.weight", Phase::update);
  EXPECT_EQ(update.front().name, "fc1.weight:cast");
  EXPECT_EQ(update.front().read, 96U);
  EXPECT_EQ(update.front().written, 192U);
  EXPECT_EQ(test::kernels_of(program, "fc1.bias", Phase::update).front().name, "fc1.bias:adam");
}

// The product writes 96 bytes of gradient in place of 192.
TEST(GradientSync, ProductsWriteGradientsAsTheyAreReduced) {
  const auto written = [](const Program& program) {
    const auto product = std::ranges::find(program.kernels, "fc1:weight_gradient", &Kernel::name);
    return product == program.kernels.end() ? 0 : product->written;
  };
  EXPECT_EQ(written(synced(Amp::o2, {})), written(synced(Amp::o2, {.as_used = true})) + 96);
}

TEST(GradientSync, ActsOnNothingWithoutACast) {
  for (const Amp amp : {Amp::o0, Amp::o3}) {
    const Program program = synced(amp, {.as_used = true});
    EXPECT_EQ(gradient_types(program), gradient_types(synced(amp, {}))) << name_of(amp);
    EXPECT_EQ(kernels(program, ""), kernels(synced(amp, {}), "")) << name_of(amp);
  }
}

// Sums of micro-batches are kept in the type of the parameter.
TEST(GradientSync, SumsOfMicroBatchesHaveTheTypeOfTheirParameters) {
  EXPECT_THAT(gradient_types(synced(Amp::o2, {.as_used = true}, true)), ElementsAre(fp32, fp32, fp32, fp32));
  // But where every micro-batch reduces its own gradients, they are as they are used.
  LoweringOptions options{.sync = GradientSync{.as_used = true},
                          .accumulate = true,
                          .sharding = {.kind = Sharding::weights, .shards = {2, 1, 2, 1}, .accumulation = true}};
  EXPECT_THAT(gradient_types(lowered(perceptron(), options)), ElementsAre(fp16, fp32, fp16, fp32));
}

// What is not fp32 is cast before its reduction and behind it: 48 numbers of 2 and of 4 bytes.
TEST(GradientSync, CastsToFp32AndBack) {
  const Program mixed = synced(Amp::o2, {.as_used = true, .in_fp32 = true});
  EXPECT_THAT(gradient_types(mixed), ElementsAre(fp32, fp32, fp32, fp32));
  EXPECT_THAT(kernels(mixed, "gradient_cast"), ElementsAre("fc2.weight:gradient_cast", "fc1.weight:gradient_cast"));
  const auto before = std::ranges::find(mixed.kernels, "fc1.weight:gradient_cast", &Kernel::name);
  EXPECT_EQ(before->read, 96U);
  EXPECT_EQ(before->written, 192U);
  const std::vector<Kernel> update = test::kernels_of(mixed, "fc1.weight", Phase::update);
  ASSERT_EQ(update.size(), 3U);
  EXPECT_EQ(update[0].name, "fc1.weight:cast_back");
  EXPECT_EQ(update[0].read, 192U);
  EXPECT_EQ(update[0].written, 96U);
  EXPECT_EQ(update[1].name, "fc1.weight:cast");
  EXPECT_EQ(mixed.gradient_bytes, (48U + 24) * (2 + 4) + (6 + 4) * 4);

  const Program narrow = synced(Amp::o3, {.in_fp32 = true});
  EXPECT_THAT(kernels(narrow, "gradient_cast"), testing::SizeIs(4));
  EXPECT_THAT(kernels(narrow, "cast_back"), testing::SizeIs(4));
  EXPECT_THAT(kernels(narrow, ":cast"), testing::SizeIs(4));  // cast_back alone
  EXPECT_EQ(test::gradient_of(narrow, "fc1.bias").reduced_type(), fp16);
  EXPECT_THAT(kernels(synced(Amp::o2, {.in_fp32 = true}), "gradient_cast"), testing::IsEmpty());
}

// Of parameters of fp32 whose gradients are kept as they are written.
TEST(GradientSync, LeavesZeroItsTypes) {
  Precision precision = precision_of(Amp::o2);
  precision.gradient = fp16;
  const auto program_of = [&](bool in_fp32) {
    return lowered(perceptron(),
                   {.precision = precision, .sync = GradientSync{.in_fp32 = in_fp32, .as_written = true}});
  };
  EXPECT_THAT(gradient_types(program_of(false)), ElementsAre(fp16, fp16, fp16, fp16));
  const Program forced = program_of(true);
  EXPECT_THAT(gradient_types(forced), ElementsAre(fp32, fp32, fp32, fp32));
  EXPECT_THAT(kernels(forced, "gradient_cast"), testing::SizeIs(4));
  EXPECT_EQ(test::gradient_of(forced, "fc1.weight").reduced_type(), fp16);
}

// Checks of reduced gradients see them as the updates do.
TEST(GradientSync, CastsBackBeforeGradientsAreChecked) {
  const LoweringOptions options{.precision = precision_of(Amp::o3), .sync = GradientSync{.in_fp32 = true}};
  Program program = lower(perceptron(), options);
  add_updates(program, {.precision = options.precision, .optimizer = Optimizer::sgd, .checks = {.overflow = true}});
  const std::vector<Kernel> checks = test::kernels_of(program, "fc1.weight", Phase::check);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].name, "fc1.weight:cast_back");
  EXPECT_EQ(checks[1].read, 96U);
  EXPECT_EQ(test::kernels_of(program, "fc1.weight", Phase::update).front().name, "fc1.weight:sgd");
}

LoweringOptions shared(Sharding kind, std::size_t parameters, std::uint32_t ranks) {
  return {.precision = {.gradient = DataType::fp16},
          .communication = DataType::fp16,
          .sharding = {kind, std::vector<std::uint32_t>(parameters, ranks)}};
}

/// Weights, gradients and optimizer states with Adam, in bytes per parameter.
double bytes_per_parameter(Sharding kind, std::uint32_t ranks) {
  const Graph graph = make_model(
      {.name = "llama2-7b", .batch = 1, .sequence = 64, .layers = 2, .hidden = 512, .heads = 8, .vocabulary = 1024});
  const Program program = lowered(graph, shared(kind, graph.parameters.size(), ranks));
  return static_cast<double>(program.weights + program.weight_casts + program.gradient_bytes +
                             program.optimizer_state) /
         static_cast<double>(graph.parameter_elements());
}

// Rajbhandari et al., "ZeRO", 5: 4 + 12/N, 2 + 14/N and 16/N bytes per parameter.
TEST(SharedParameters, BytesOfZero) {
  for (const std::uint32_t ranks : {2U, 8U, 64U}) {
    const double n = ranks;
    EXPECT_NEAR(bytes_per_parameter(Sharding::states, ranks), 4 + 12 / n, 0.01);
    EXPECT_NEAR(bytes_per_parameter(Sharding::gradients, ranks), 2 + 14 / n, 0.01);
    EXPECT_NEAR(bytes_per_parameter(Sharding::weights_each_use, ranks), 16 / n, 0.01);
  }
}

// 7.5 billion parameters on 64 NPUs: 120, 31.4, 16.6 and 1.9 GB.
TEST(SharedParameters, PublishedSizes) {
  EXPECT_NEAR(7.5 * bytes_per_parameter(Sharding::states, 64), 31.4, 0.05);
  EXPECT_NEAR(7.5 * bytes_per_parameter(Sharding::gradients, 64), 16.6, 0.05);
  EXPECT_NEAR(7.5 * bytes_per_parameter(Sharding::weights_each_use, 64), 1.9, 0.05);
}

TEST(SharedParameters, UpdatesOfAPart) {
  const Program program = lowered(perceptron(), shared(Sharding::states, 4, 5));
  // 48 weights are 10 for each of five ranks, the last one has 8.
  EXPECT_EQ(program.parameters[0].shard(), 10U);
  const std::vector<Kernel> update = test::kernels_of(program, "fc1.weight", Phase::update);
  EXPECT_EQ(update.back().name, "fc1.weight:cast");
  EXPECT_EQ(update.back().written, 10U * 2);
  EXPECT_EQ(program.optimizer_state, (10U + 2 + 5 + 1) * 8);
  EXPECT_THAT(kernels(program, "fc1:cast"), testing::IsEmpty());
}

TEST(SharedParameters, MindSporeGathersWhatIsUsed) {
  LoweringOptions options{.sharding = {Sharding::weights, {2, 1, 2, 1}}};
  const Program program = lowered(perceptron(), options);
  EXPECT_EQ(program.weights, (24U + 6 + 12 + 4) * 4);
  EXPECT_EQ(program.weight_casts, (24U + 12) * 2);  // parts, before they are gathered
  EXPECT_EQ(program.gathered, (48U + 24) * 2);
}

// Where nothing is added up, parts are all that stays of gradients behind their reductions; what is added up is whole,
// unless parts are.
TEST(SharedParameters, MindSporeKeepsPartsOfGradients) {
  LoweringOptions options{.sharding = {Sharding::weights, {2, 1, 2, 1}}};
  EXPECT_EQ(lowered(perceptron(), options).gradient_bytes, (24U + 6 + 12 + 4) * 4);
  options.accumulate = true;
  EXPECT_EQ(lowered(perceptron(), options).gradient_bytes, (48U + 6 + 24 + 4) * 4);
  options.sharding.accumulation = true;
  EXPECT_EQ(lowered(perceptron(), options).gradient_bytes, (24U + 6 + 12 + 4) * 4);
  options = {.sharding = {Sharding::states, {2, 1, 2, 1}}};
  EXPECT_EQ(lowered(perceptron(), options).gradient_bytes, (48U + 6 + 24 + 4) * 4);
}

/// A decoder without dropout whose layers are recomputed, all or none of them.
Graph decoder(bool recompute) {
  Graph graph = make_model(
      {.name = "llama2-7b", .batch = 2, .sequence = 32, .layers = 3, .hidden = 64, .heads = 4, .vocabulary = 128});
  if (!recompute) return graph;
  for (Operator& op : graph.operators) op.recompute = op.layer != no_layer && !op.name.ends_with("add_2");
  return graph;
}

Bytes kept_by_layer(const Program& program, const Graph& graph, std::uint32_t layer) {
  Bytes bytes = 0;
  const std::uint32_t forward = passes(program).front().count;
  for (const LiveTensor& tensor : program.tensors) {
    if (tensor.writer == LiveTensor::none || tensor.writer >= forward || tensor.last_kernel < forward) continue;
    if (graph.operators[program.kernels[tensor.writer].op].layer == layer) bytes += tensor.bytes;
  }
  return bytes;
}

// A recomputed layer keeps its output, 2 bytes for each of s·b·h numbers.
TEST(Recomputing, KeepsTheOutputsOfLayers) {
  const Graph graph = decoder(true);
  const Program program = lowered(graph, {});
  for (std::uint32_t layer = 0; layer < 3; ++layer) EXPECT_EQ(kept_by_layer(program, graph, layer), 2U * 32 * 2 * 64);
  const Graph plain = decoder(false);
  EXPECT_GT(kept_by_layer(lowered(plain, {}), plain, 1), 10U * 32 * 2 * 64);
}

// The backward pass does the products of the layers once more, but for the last one, whose result is kept.
TEST(Recomputing, RepeatsTheForwardPass) {
  const Program program = lowered(decoder(true), {});
  const Program plain = lowered(decoder(false), {});
  const auto products = [](const Program& of, bool again) {
    Flops flops = 0;
    for (const Kernel& kernel : of.micro_batch()) {
      if (kernel.cube.m > 0 && kernel.recomputed == again) flops += kernel.flops;
    }
    return flops;
  };
  EXPECT_EQ(products(program, false), products(plain, false));
  Flops forward = 0;
  for (const Kernel& kernel : plain.micro_batch()) {
    const bool kept =
        kernel.name.find("down_proj") != std::string::npos || kernel.name.find("lm_head") != std::string::npos;
    if (kernel.phase == Phase::forward && kernel.cube.m > 0 && !kept) forward += kernel.flops;
  }
  EXPECT_EQ(products(program, true), forward);
  EXPECT_EQ(products(plain, true), 0);
  for (const Kernel& kernel : program.micro_batch()) {
    EXPECT_TRUE(!kernel.recomputed || kernel.phase == Phase::backward) << kernel.name;
  }
  // Layer by layer: a layer is computed again when its gradient has come, not before.
  const auto first = [&](std::string_view name) {
    return std::ranges::find_if(program.kernels, [&](const Kernel& kernel) {
      return kernel.name.starts_with(name) && kernel.phase == Phase::backward && !kernel.recomputed;
    });
  };
  const auto again = std::ranges::find_if(program.kernels, [](const Kernel& kernel) {
    return kernel.recomputed && kernel.name.starts_with("model.layers.1.");
  });
  EXPECT_GT(again, first("model.layers.2.self_attn.q_proj"));
  EXPECT_LT(again, first("model.layers.1.mlp.down_proj"));
}

// An operator of its own: its result is made again before it is first read.
TEST(Recomputing, SingleOperators) {
  Graph graph = make_model({.name = "tinygpt", .batch = 2});
  for (Operator& op : graph.operators) op.recompute = op.kind == OperatorKind::gelu;
  const Program program = lowered(graph, {});
  EXPECT_THAT(kernels(program, "recompute"), ElementsAre("gelu:recompute_forward"));
  const auto again = std::ranges::find(program.kernels, "gelu:recompute_forward", &Kernel::name);
  EXPECT_EQ((again + 1)->name, "proj:bias_gradient");
  const Program plain = lowered(make_model({.name = "tinygpt", .batch = 2}), {});
  EXPECT_LT(live_bytes(program)[passes(program)[1].first], live_bytes(plain)[passes(plain)[1].first]);
}

// Random masks are kept: what is computed again is dropped where it was dropped before.
TEST(Recomputing, MasksAreNotDrawnAgain) {
  Graph graph = make_model({.name = "gpt2-small", .batch = 1, .sequence = 32, .layers = 2, .hidden = 64, .heads = 4});
  for (Operator& op : graph.operators) op.recompute = op.layer != no_layer && !op.name.ends_with("add_2");
  for (const bool fused : {false, true}) {
    const Program program = lowered(graph, {.fused_attention = fused});
    EXPECT_THAT(kernels(program, "recompute_drop_mask"), testing::IsEmpty());
    EXPECT_THAT(kernels(program, ":recompute_"), testing::Contains(HasSubstr("attn.core")));
  }
}

}  // namespace
}  // namespace hcclsim::models
