// The graph builder, the zoo's options and the launch order of the backward pass.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "models/graph_builder.hpp"
#include "models/lowering/backward_order.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Message of the bad_input error of kind "model" (or of a small input) that `build` throws; a failure of the test if
/// it throws none.
template <typename Build>
std::string model_refusal(Build&& build) {
  try {
    build();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_TRUE(error.kind() == "model" || error.kind() == small_input) << error.kind();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

std::string refused_model(const ModelOptions& options) {
  return model_refusal([&] { (void)make_model(options); });
}

const Operator& find(const Graph& graph, const std::string& name) {
  for (const Operator& op : graph.operators) {
    if (op.name == name) return op;
  }
  throw std::runtime_error("no operator " + name);
}

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
  x = builder.dropout("drop", builder.gelu("gelu", builder.attention("attention", x, 2, true)), 0.25F);
  EXPECT_EQ(builder.shape(x), (Shape{15, 4}));
  const Graph graph = std::move(builder).finish(x);
  EXPECT_EQ(graph.input_kind, InputKind::tokens);
  EXPECT_EQ(graph.batch(), 3U);
  EXPECT_EQ(graph.classes(), 4U);
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
  EXPECT_THAT(with_embedding(16, [](GraphBuilder& b, OperatorId x) { b.attention("attn", x, 2, true); }),
              AllOf(HasSubstr("attn:"), HasSubstr("16 features")));
  for (const std::uint32_t heads : {0U, 3U}) {
    EXPECT_THAT(with_embedding(12, [&](GraphBuilder& b, OperatorId x) { b.attention("attn", x, heads, true); }),
                AllOf(HasSubstr("attn:"), HasSubstr(fmt::format("{} heads", heads)), HasSubstr("4 features")));
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
  EXPECT_THAT(
      model_refusal([] { GraphBuilder("test", {.batch = 2, .channels = 4, .height = 3}).layer_norm("norm", 0); }),
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

TEST(Zoo, NamesAreForgiving) {
  for (const char* name : {"resnet50", "ResNet50", "ResNet-50", "RESNET_50"}) {
    EXPECT_EQ(make_model({.name = name}).title, "ResNet50 v1.5") << name;
  }
  EXPECT_EQ(make_model({.name = "MobileNetV2"}).title, "MobileNetV2");
  for (const ModelInfo& info : model_list()) {
    EXPECT_TRUE(make_model({.name = std::string(info.name)}).title.starts_with(info.title)) << info.name;
  }
}

TEST(Zoo, UnknownNameListsAllAndTheNearest) {
  EXPECT_THAT(refused_model({.name = "resnet51"}),
              AllOf(HasSubstr("'resnet51'"), HasSubstr("did you mean resnet50?"), HasSubstr("vgg16, alexnet")));
  EXPECT_THAT(refused_model({.name = ""}), HasSubstr("resnet50"));
}

TEST(Zoo, RefusesImpossibleSizes) {
  EXPECT_THAT(refused_model({.batch = 0}), HasSubstr("batch must be 1 to 65536, got 0"));
  EXPECT_THAT(refused_model({.batch = 65537}), HasSubstr("65537"));
  EXPECT_THAT(refused_model({.input = 0}), HasSubstr("0x0"));
  EXPECT_THAT(refused_model({.input = 1'000'000}), HasSubstr("1000000"));
  EXPECT_THAT(refused_model({.classes = 0}), AllOf(HasSubstr("fc"), HasSubstr("got 0")));
  EXPECT_THAT(refused_model({.input = 31}), AllOf(HasSubstr("layer4.0.conv2"), HasSubstr("31x31"), HasSubstr("32")));
  EXPECT_THAT(refused_model({.name = "vgg16", .input = 31}), HasSubstr("features.30"));
  EXPECT_THAT(refused_model({.name = "alexnet", .input = 62}),
              AllOf(HasSubstr("features.12"), HasSubstr("3x3 window")));
  EXPECT_THAT(refused_model({.name = "mlp:16000000,16000000"}), HasSubstr("parameters"));
}

TEST(Zoo, SmallestInputs) {
  EXPECT_EQ(find(make_model({.input = 32}), "layer4.2.conv3").output.image(), 1U);
  EXPECT_EQ(find(make_model({.name = "alexnet", .input = 63}), "features.12").output.image(), 1U);
  EXPECT_EQ(find(make_model({.name = "vgg16", .input = 32}), "features.30").output.image(), 1U);
}

TEST(Zoo, OddInputsRoundAsTorchDoes) {
  // conv1: (225 + 6 − 7) / 2 + 1 = 113; maxpool: (113 + 2 − 3) / 2 + 1 = 57; then 29, 15, 8.
  const Graph graph = make_model({.name = "resnet50", .input = 225});
  EXPECT_EQ(find(graph, "conv1").output.height(), 113U);
  EXPECT_EQ(find(graph, "maxpool").output.height(), 57U);
  EXPECT_EQ(find(graph, "layer2.0.conv2").output.height(), 29U);
  EXPECT_EQ(find(graph, "layer3.0.downsample.0").output.height(), 15U);
  EXPECT_EQ(find(graph, "layer4.2.conv3").output.height(), 8U);
  EXPECT_EQ(find(make_model({.input = 33}), "layer4.2.conv3").output.height(), 2U);
}

TEST(Zoo, ClassesAndBiasOfTheLastOperator) {
  EXPECT_EQ(make_model({.classes = 1001}).parameter_elements(), 25'559'081U);
  const Graph graph = make_model({.fc_bias = false});
  EXPECT_EQ(graph.parameters.size(), 160U);
  EXPECT_EQ(graph.parameters.back().name, "fc.weight");
  EXPECT_EQ(make_model({.name = "vgg16", .fc_bias = false}).parameters.size(), 31U);
}

TEST(Zoo, Mlp) {
  const Graph graph = make_model({.name = "mlp:784,512,10", .batch = 8});
  EXPECT_EQ(graph.title, "MLP 784-512-10");
  EXPECT_EQ(graph.parameter_elements(), 784U * 512 + 512 + 512 * 10 + 10);
  EXPECT_EQ(graph.operators.front().shape(), (Shape{8, 784}));
  EXPECT_EQ(make_model({.name = "MLP:4,2", .fc_bias = false}).parameters.size(), 1U);
  for (const char* name : {"mlp:", "mlp:4", "mlp:4,", "mlp:,4", "mlp:4,,5", "mlp:4,0", "mlp:-4,5", "mlp:4;5",
                           "mlp:4, 5", "mlp:4,5x", "mlp:99999999999,5"}) {
    EXPECT_THAT(refused_model({.name = name}), HasSubstr(name)) << name;
  }
  EXPECT_THAT(refused_model({.name = "mlp:4,5", .input = 224}), HasSubstr("--input"));
  EXPECT_THAT(refused_model({.name = "mlp:4,5", .classes = 5}), HasSubstr("--classes"));
}

TEST(Zoo, SmallNetworksHaveTheirOwnSizes) {
  const Graph lenet = make_model({.name = "lenet", .batch = 4});
  EXPECT_EQ(lenet.operators.front().shape(), (Shape{4, 1, 28, 28}));
  EXPECT_EQ(lenet.classes(), 10U);
  EXPECT_EQ(lenet.input_kind, InputKind::images);
  EXPECT_EQ(make_model({.name = "lenet", .input = 32, .classes = 7}).classes(), 7U);
  EXPECT_THAT(refused_model({.name = "lenet", .input = 11}), HasSubstr("at least 12 pixels"));
  EXPECT_EQ(make_model({.name = "smallres"}).operators.front().shape().height(), 16U);
  EXPECT_EQ(make_model({.name = "smallres", .fc_bias = false}).parameters.size(), 19U);
  const Graph tinygpt = make_model({.name = "tinygpt", .batch = 2});
  EXPECT_EQ(tinygpt.operators.front().shape(), (Shape{2, 16}));
  EXPECT_EQ(tinygpt.classes(), 32U);
  EXPECT_EQ(tinygpt.input_of(tinygpt.operators.back()).batch, 32U);
  EXPECT_THAT(refused_model({.name = "tinygpt", .input = 16}), AllOf(HasSubstr("tinygpt"), HasSubstr("--input")));
  EXPECT_THAT(refused_model({.name = "tinygpt", .classes = 16}), HasSubstr("--classes"));
  EXPECT_EQ(make_model({.name = "mlp:4,2"}).input_kind, InputKind::features);
}

TEST(Zoo, ResNetsStartTheirResidualBranchesSmall) {
  const auto scaled = [](const char* name) {
    std::vector<std::string> names;
    for (const Parameter& parameter : make_model({.name = name}).parameters) {
      if (parameter.initial_scale != 1) names.push_back(fmt::format("{} {}", parameter.name, parameter.initial_scale));
    }
    return names;
  };
  const std::vector<std::string> bottleneck = scaled("resnet50");
  EXPECT_EQ(bottleneck.size(), 16U);
  for (const std::string& name : bottleneck) EXPECT_THAT(name, testing::EndsWith(".bn3.weight 0.125"));
  const std::vector<std::string> basic = scaled("resnet18");
  EXPECT_EQ(basic.size(), 8U);
  for (const std::string& name : basic) EXPECT_THAT(name, testing::EndsWith(".bn2.weight 0.125"));
  EXPECT_THAT(scaled("smallres"), testing::IsEmpty());
}

std::vector<std::string> ordered_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const OperatorId id : backward_order(graph)) {
    if (!graph.operators[id].parameters.empty()) names.push_back(graph.operators[id].name);
  }
  return names;
}

/// conv and bn, then a block with convolutions "main" and "short" of `stride` on its two branches.
Graph block(std::uint32_t stride) {
  GraphBuilder builder("test", {1, 3, 8, 8});
  const OperatorId x = builder.convolution("stem", GraphBuilder::input(), {.channels = 8, .window = {}});
  OperatorId main = builder.convolution("main1", x, {.channels = 8, .window = {.kernel = 1, .stride = stride}});
  main = builder.convolution("main2", builder.batch_norm("bn1", main), {.channels = 8, .window = {}});
  main = builder.batch_norm("bn2", main);
  const OperatorId side = builder.convolution("short", x, {.channels = 8, .window = {.kernel = 1, .stride = stride}});
  const OperatorId sum = builder.add("add", main, builder.batch_norm("bn3", side));
  const OperatorId logits = builder.linear("fc", builder.flatten("flatten", sum), 2, true);
  return std::move(builder).finish(logits);
}

TEST(BackwardOrder, UnstridedShortcutFollowsTheConvolutionItIsAddedTo) {
  EXPECT_THAT(ordered_names(block(1)), ElementsAre("fc", "bn3", "bn2", "main2", "short", "bn1", "main1", "stem"));
}

TEST(BackwardOrder, StridedShortcutWaitsForTheFirstConvolutionOfTheBlock) {
  EXPECT_THAT(ordered_names(block(2)), ElementsAre("fc", "bn3", "bn2", "main2", "bn1", "main1", "short", "stem"));
}

TEST(BackwardOrder, EveryOperatorComesAfterItsConsumers) {
  for (const ModelInfo& info : model_list()) {
    const Graph graph = make_model({.name = std::string(info.name)});
    const std::vector<OperatorId> order = backward_order(graph);
    ASSERT_EQ(order.size(), graph.operators.size() - 1);
    std::vector<std::size_t> position(graph.operators.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (OperatorId id = 1; id < graph.operators.size(); ++id) {
      ASSERT_LT(position[id], order.size()) << info.name << ": missing " << graph.operators[id].name;
      for (const OperatorId input : graph.operators[id].inputs) EXPECT_LT(position[id], position[input]) << info.name;
    }
  }
}

}  // namespace
}  // namespace hcclsim::models
