// Kernels of a transformer's training step: a block computed by hand, sums of work by formula, production order.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::models {
namespace {

/// Two sequences of three tokens out of five, six features: tokens and positions, layer norm, two heads of attention
/// over six features (so three times two), GELU, dropout; its input is added before the linear operator to four
/// classes.
Graph small_transformer() {
  GraphBuilder builder = GraphBuilder::of_tokens("small", 2, 3);
  OperatorId x = builder.token_embedding("table", GraphBuilder::input(), 5, 6);
  x = builder.position_embedding("position", x);
  x = builder.layer_norm("norm", x);
  x = builder.attention("attention", x, {.heads = 2, .causal = true});
  const OperatorId context = x;
  x = builder.dropout("drop", builder.gelu("gelu", x), 0.25F);
  const OperatorId logits = builder.linear("head", builder.add("add", x, context), 4, false);
  return std::move(builder).finish(logits);
}

struct ExpectedTransformer {
  const char* name;
  std::uint64_t m, n, k, groups;
  Bytes read, written;
  std::uint64_t vector_elements;
};

// Six rows. In fp16: embedded 6·6·2 = 72 bytes, a third of it (context, GELU, gradients of a third) 24, scores
// 2 sequences · 2 heads · 3 · 3 · 2 = 72, logits 48; statistics 6 rows of two fp32 = 48; tokens and labels 24; the
// tables in fp32 5·6·4 = 120 and 3·6·4 = 72; mask of 12 bits 2; the linear operator's 8 weights 32 in fp32, 16 in fp16.
TEST(TransformerLowering, SmallNetworkByHand) {
  const std::vector<ExpectedTransformer> expected{
      {"table:forward", 0, 0, 0, 1, 24 + 144, 72, 36},  // rows of the table in fp32
      {"position:forward", 0, 0, 0, 1, 72 + 72, 72, 36},
      {"norm:forward", 0, 0, 0, 1, 72 + 48, 72 + 48, 7 * 36},
      {"attention:scores", 3, 3, 1, 4, 48, 72, 0},  // queries and keys
      {"attention:softmax", 0, 0, 0, 1, 72, 72, 6 * 36},
      {"attention:context", 3, 1, 3, 4, 72 + 24, 24, 0},
      {"gelu:forward", 0, 0, 0, 1, 24, 24, 9 * 12},
      {"drop:forward", 0, 0, 0, 1, 24, 24 + 2, 12},
      {"add:forward", 0, 0, 0, 1, 24 + 24, 24, 12},
      {"head:cast", 0, 0, 0, 1, 32, 16, 8},
      {"head:forward", 6, 4, 2, 1, 24 + 16, 48, 0},
      {"loss:forward", 0, 0, 0, 1, 48 + 24, 4 + 48, 7 * 24},
      {"head:weight_gradient", 4, 2, 6, 1, 48 + 24, 32, 0},
      {"head:data_gradient", 6, 2, 4, 1, 48 + 16, 24, 0},
      {"drop:gradient", 0, 0, 0, 1, 24 + 2, 24, 12},
      {"gelu:gradient+add", 0, 0, 0, 1, 24 + 24 + 24, 24, 18 * 12},
      {"attention:value_gradient", 3, 1, 3, 4, 72 + 24, 24, 0},
      {"attention:probability_gradient", 3, 3, 1, 4, 24 + 24, 72, 0},
      {"attention:softmax_gradient", 0, 0, 0, 1, 72 + 72, 72, 5 * 36},
      {"attention:query_gradient", 3, 1, 3, 4, 72 + 24, 24, 0},
      {"attention:key_gradient", 3, 1, 3, 4, 72 + 24, 24, 0},
      {"norm:reduce_gradient", 0, 0, 0, 1, 72 + 72 + 48, 48, 5 * 36},
      {"norm:apply_gradient", 0, 0, 0, 1, 72 + 72 + 48 + 24, 72, 10 * 36},
      {"position:weight_gradient", 0, 0, 0, 1, 72, 72, 36},
      {"table:weight_gradient", 0, 0, 0, 1, 72 + 24, 120, 36},
  };
  const Program step = lower(small_transformer(), {});
  ASSERT_EQ(step.kernels.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Kernel& kernel = step.kernels[i];
    SCOPED_TRACE(expected[i].name);
    EXPECT_EQ(kernel.name, expected[i].name);
    EXPECT_EQ(kernel.cube.m, expected[i].m);
    EXPECT_EQ(kernel.cube.n, expected[i].n);
    EXPECT_EQ(kernel.cube.k, expected[i].k);
    EXPECT_EQ(kernel.cube.groups, expected[i].groups);
    EXPECT_EQ(kernel.read, expected[i].read);
    EXPECT_EQ(kernel.written, expected[i].written);
    EXPECT_EQ(kernel.vector_elements, expected[i].vector_elements);
  }
}

TEST(TransformerLowering, ProbabilitiesLiveUntilTheGradientOfTheSoftmax) {
  const Program step = lower(small_transformer(), {});
  std::multiset<std::tuple<Bytes, std::uint32_t, std::uint32_t>> lives;
  for (const LiveTensor& tensor : step.tensors) {
    lives.emplace(tensor.bytes, tensor.first_kernel, tensor.last_kernel);
  }
  const std::multiset<std::tuple<Bytes, std::uint32_t, std::uint32_t>> expected{
      {24, 0, 24},                             // tokens
      {72, 0, 1},   {72, 1, 22},               // embedded, with positions
      {72, 2, 20},  {48, 2, 22},               // normalised (queries, keys, values), statistics
      {72, 3, 4},   {72, 4, 18},               // scores, probabilities
      {24, 5, 15},                             // context: GELU's input
      {24, 6, 7},   {24, 7, 8},   {2, 7, 14},  // GELU, dropout, its mask
      {24, 8, 12},  {48, 10, 11},              // sum, logits
      {48, 11, 13}, {24, 13, 15},              // gradients of the logits and of the sum
      {24, 14, 15}, {24, 15, 17},              // of GELU and of the context
      {72, 16, 22},                            // of the normalised, in three parts
      {72, 17, 18}, {72, 18, 20},              // of probabilities and scores
      {72, 22, 24},                            // of the embedded, with positions and without
  };
  EXPECT_EQ(lives, expected);
}

/// Sum of the FLOPs of the kernels of each operator in one phase.
std::map<std::string, Flops> flops_by_operator(const Program& step, Phase phase) {
  std::map<std::string, Flops> sums;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.phase != phase || kernel.name.ends_with(":cast") || kernel.name.ends_with(":bias_gradient")) continue;
    sums[kernel.name.substr(0, kernel.name.find(':'))] += kernel.flops;
  }
  return sums;
}

TEST(TransformerLowering, KernelsDoTheWorkOfTheirOperators) {
  const Graph graph = make_model({.name = "tinygpt", .batch = 3});
  const Program step = lower(graph, {.fusion = Fusion::none});
  const std::map<std::string, Flops> forward = flops_by_operator(step, Phase::forward);
  std::map<std::string, Flops> backward = flops_by_operator(step, Phase::backward);
  backward["add_1"] -= 48 * 64;  // sums of the two gradients behind a residual connection
  backward["wpe"] -= 48 * 64;
  for (const Operator& op : graph.operators) {
    if (op.kind == OperatorKind::input || op.kind == OperatorKind::loss) continue;
    EXPECT_EQ(forward.at(op.name), forward_flops(graph, op)) << op.name;
    if (op.kind == OperatorKind::add) continue;
    EXPECT_EQ(backward.at(op.name), backward_flops(graph, op, op.name != "wte")) << op.name;
  }
  EXPECT_EQ(backward["add_1"], 0);
}

TEST(TransformerLowering, ProductsPerTokenAsPublishedFormulas) {
  const Graph graph = make_model({.name = "tinygpt", .batch = 3});
  constexpr double d = 64;
  constexpr double s = 16;
  // Queries, keys and values; scores and context, counted full; projection; two of the perceptron; 32 tokens.
  const double per_token = 2 * d * 3 * d + 2 * 2 * d * s + 2 * d * d + 4 * d * 4 * d + 2 * d * 32;
  std::map<Phase, Flops> products;
  for (const Kernel& kernel : lower(graph, {.fusion = Fusion::none}).kernels) {
    if (kernel.kind == KernelClass::matmul) products[kernel.phase] += kernel.flops;
  }
  EXPECT_EQ(products[Phase::forward], 3 * s * per_token);
  EXPECT_EQ(products[Phase::backward], 2 * 3 * s * per_token);
}

TEST(TransformerLowering, DropoutOfNothingLaunchesNothing) {
  for (const float rate : {0.0F, 0.1F}) {
    SCOPED_TRACE(fmt::format("drop rate {}", rate));
    GraphBuilder builder("test", {2, 4});
    OperatorId x = builder.linear("fc1", GraphBuilder::input(), 4, false);
    x = builder.linear("fc2", builder.dropout("drop", x, rate), 2, false);
    const Program step = lower(std::move(builder).finish(x), {});
    const auto launched =
        std::ranges::count_if(step.kernels, [](const Kernel& kernel) { return kernel.name.starts_with("drop:"); });
    EXPECT_EQ(launched, rate == 0 ? 0 : 2);
  }
}

std::vector<std::string> production_order(const char* model) {
  std::vector<std::string> names;
  for (const Gradient& gradient : lower(make_model({.name = model}), {}).gradients) names.push_back(gradient.name);
  return names;
}

TEST(SmallNetworks, GradientsComeInReverseParameterOrder) {
  for (const char* model : {"tinygpt", "lenet"}) {
    std::vector<std::string> names;
    for (const Parameter& parameter : make_model({.name = model}).parameters) names.push_back(parameter.name);
    std::ranges::reverse(names);
    EXPECT_EQ(production_order(model), names) << model;
  }
}

TEST(SmallNetworks, StridedShortcutComesAfterTheFirstConvolutionOfItsBlock) {
  EXPECT_THAT(
      production_order("smallres"),
      testing::ElementsAre("fc.bias", "fc.weight", "block2.downsample.1.bias", "block2.downsample.1.weight",
                           "block2.bn2.bias", "block2.bn2.weight", "block2.conv2.weight", "block2.bn1.bias",
                           "block2.bn1.weight", "block2.conv1.weight", "block2.downsample.0.weight", "block1.bn2.bias",
                           "block1.bn2.weight", "block1.conv2.weight", "block1.bn1.bias", "block1.bn1.weight",
                           "block1.conv1.weight", "bn1.bias", "bn1.weight", "conv1.weight"));
}

}  // namespace
}  // namespace hcclsim::models
