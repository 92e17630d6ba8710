// The graph builder.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "models/data/dataset.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/models/graphs.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(GraphBuilder, InfersShapes) {
  GraphBuilder builder("test", {2, 3, 9, 7});
  // (9 + 2·1 − 3) / 2 + 1 = 5, (7 + 2 − 3) / 2 + 1 = 4
  OperatorId x = builder.convolution("conv", GraphBuilder::input(),
                                     {.channels = 8, .window = {.kernel = 3, .stride = 2, .padding = 1}, .bias = true});
  EXPECT_EQ(builder.shape(x), (Shape{2, 8, 5, 4}));
  x = builder.max_pool("pool", x, {.kernel = 2, .stride = 2});
  EXPECT_EQ(builder.shape(x), (Shape{2, 8, 2, 2}));
  x = builder.flatten("flatten", x);
  EXPECT_EQ(builder.shape(x), (Shape{2, 32}));
  const OperatorId logits = builder.linear("fc", x, 10, true);
  const Graph graph = std::move(builder).finish(logits);
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("conv.weight", "conv.bias", "fc.weight", "fc.bias"));
  EXPECT_THAT(graph.parameters[0].shape, ElementsAre(8, 3, 3, 3));
  EXPECT_EQ(graph.parameter_elements(), 8U * 27 + 8 + 320 + 10);
  EXPECT_EQ(graph.operators.back().kind, OperatorKind::loss);
}

TEST(GraphBuilder, RefusesWhatCannotBe) {
  const Shape images{2, 4, 8, 8};
  const auto with_builder = [&](auto&& work) {
    return model_refusal([&] {
      GraphBuilder builder("test", images);
      work(builder);
    });
  };
  EXPECT_THAT(model_refusal([] { GraphBuilder("test", {0, 3}); }), HasSubstr("got 0"));
  EXPECT_THAT(with_builder([](GraphBuilder& b) { b.convolution("c", 0, {.channels = 6, .window = {}, .groups = 4}); }),
              AllOf(HasSubstr("c:"), HasSubstr("4 groups")));
  EXPECT_THAT(with_builder([](GraphBuilder& b) { b.convolution("c", 0, {.channels = 0, .window = {}}); }),
              HasSubstr("got 0"));
  EXPECT_THAT(with_builder([](GraphBuilder& b) { b.convolution("c", 0, {.channels = 6, .window = {.kernel = 9}}); }),
              AllOf(HasSubstr("9x9 window"), HasSubstr("8x8")));
  EXPECT_THAT(
      with_builder([](GraphBuilder& b) { b.add("sum", 0, b.convolution("c", 0, {.channels = 6, .window = {}})); }),
      AllOf(HasSubstr("sum"), HasSubstr("2x4x8x8"), HasSubstr("2x6x8x8")));
  EXPECT_THAT(with_builder([](GraphBuilder& b) { b.linear("fc", 0, 10, true); }), HasSubstr("flat"));
}

TEST(GraphBuilder, SequencesAreMatricesOfRows) {
  GraphBuilder builder = GraphBuilder::of_tokens("test", 3, 5);
  OperatorId x = builder.token_embedding("table", GraphBuilder::input(), 7, 12);
  EXPECT_EQ(builder.shape(x), (Shape{15, 12}));
  x = builder.layer_norm("norm", builder.position_embedding("position", x));
  x = builder.dropout("drop", builder.gelu("gelu", builder.attention("attention", x, {.heads = 2, .causal = true})),
                      0.25F);
  EXPECT_EQ(builder.shape(x), (Shape{15, 4}));
  const Graph graph = std::move(builder).finish(x);
  EXPECT_EQ(graph.input_kind, InputKind::tokens);
  EXPECT_EQ(graph.batch(), 3U);
  EXPECT_EQ(sample_form(graph).classes, 4U);
  EXPECT_FALSE(graph.needs_gradient().front());
  std::vector<std::string> parameters;
  for (const Parameter& parameter : graph.parameters) {
    parameters.push_back(fmt::format("{} {}", parameter.name, fmt::join(parameter.shape, "x")));
  }
  EXPECT_THAT(parameters, ElementsAre("table.weight 7x12", "position.weight 5x12", "norm.weight 12", "norm.bias 12"));
  const Operator& attention = find(graph, "attention");
  EXPECT_EQ(attention.sequence, 5U);
  EXPECT_EQ(attention.heads, 2U);
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(find(graph, "drop").drop_rate, 0.25F);
}

TEST(GraphBuilder, RefusesSequencesThatCannotBe) {
  const auto with_embedding = [&](std::uint32_t features, auto&& work) {
    return model_refusal([&] {
      GraphBuilder builder = GraphBuilder::of_tokens("test", 2, 4);
      work(builder, builder.token_embedding("table", GraphBuilder::input(), 8, features));
    });
  };
  EXPECT_THAT(
      with_embedding(16, [](GraphBuilder& b, OperatorId x) { b.attention("attn", x, {.heads = 2, .causal = true}); }),
      AllOf(HasSubstr("attn:"), HasSubstr("16 features")));
  for (const std::uint32_t heads : {0U, 3U}) {
    EXPECT_THAT(with_embedding(12, [&](GraphBuilder& b,
                                       OperatorId x) { b.attention("attn", x, {.heads = heads, .causal = true}); }),
                AllOf(HasSubstr("attn:"), HasSubstr(fmt::format("{} heads", heads)), HasSubstr("12 features")));
  }
  for (const float rate : {-0.5F, 1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(with_embedding(12, [&](GraphBuilder& b, OperatorId x) { b.dropout("drop", x, rate); }),
                AllOf(HasSubstr("drop:"), HasSubstr(fmt::format("got {}", rate))));
  }
  EXPECT_THAT(with_embedding(12, [](GraphBuilder& b, OperatorId) { b.linear("fc", GraphBuilder::input(), 3, true); }),
              AllOf(HasSubstr("fc:"), HasSubstr("tokens of the input")));
  EXPECT_THAT(with_embedding(12, [](GraphBuilder& b, OperatorId x) { b.token_embedding("second", x, 8, 12); }),
              HasSubstr("second:"));
  EXPECT_THAT(model_refusal([] { (void)GraphBuilder::of_tokens("test", 65536, 65536); }), HasSubstr("65536 sequences"));
  EXPECT_THAT(model_refusal([] {
                GraphBuilder("test", {2, 4}).token_embedding("table", 0, 8, 4);
              }),
              AllOf(HasSubstr("table:"), HasSubstr("must be tokens")));
  EXPECT_THAT(model_refusal([] {
                GraphBuilder("test", {2, 4}).position_embedding("position", 0);
              }),
              AllOf(HasSubstr("position:"), HasSubstr("2x4"), HasSubstr("features")));
  EXPECT_THAT(model_refusal([] {
                GraphBuilder("test", {2, 4, 3, 1}).layer_norm("norm", 0);
              }),
              AllOf(HasSubstr("norm:"), HasSubstr("2x4x3x1")));
}

TEST(Flops, AdaptivePoolingReadsOverlappingWindows) {
  // 5 pixels to 3: windows 0-1, 1-3, 3-4 read 2 + 3 + 2; both sides: 49 per channel.
  GraphBuilder builder("test", {1, 2, 5, 5});
  const OperatorId x = builder.flatten("flatten", builder.average_pool("pool", GraphBuilder::input(), 3));
  const Graph graph = std::move(builder).finish(x);
  EXPECT_EQ(forward_flops(graph, graph.operators[1]), 2 * 49);
}

TEST(Flops, OfAStepByHand) {
  // Two linear operators of 4x3 and 3x2 over a batch of 2, 2 per multiply-add: forward 48 + 24, backward 2·24 + 48
  // (no gradient of the input). ReLU: 6 and 6. Loss: 5 and 2 per logit of 4.
  const Graph graph = make_model({.name = "mlp:4,3,2", .batch = 2});
  EXPECT_EQ(step_flops(graph), (48 + 24) + (48 + 48) + (6 + 6) + (20 + 8));
}

TEST(Flops, OfAStepWithoutGradientsBeforeTheFirstParameter) {
  // The first flatten gives 1 per element forward and has no backward pass. Linear 4 -> 2: 16 and 16; loss: 10 and 4.
  GraphBuilder builder("test", {1, 1, 2, 2});
  const OperatorId x = builder.linear("linear", builder.flatten("flatten", GraphBuilder::input()), 2, false);
  const Graph graph = std::move(builder).finish(x);
  const Flops flatten = forward_flops(graph, graph.operators[1]);
  EXPECT_EQ(step_flops(graph), flatten + (16 + 16) + (10 + 4));
}

}  // namespace
}  // namespace hcclsim::models
