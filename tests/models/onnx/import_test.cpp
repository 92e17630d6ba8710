#include "models/onnx/import.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/models/onnx/wire.hpp"
#include "tests/models/onnx/zoo_writer.hpp"

namespace hcclsim::models::onnx {
namespace {

using ::testing::HasSubstr;

std::string saved(const std::string& bytes) {
  const std::string path = testing::TempDir() + "network.onnx";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// All that a kernel costs, and what it is there for.
std::string text_of(const Kernel& kernel) {
  const auto product = [](const CubeWork& work) {
    return fmt::format("{}x{}x{}*{}{}{}", work.m, work.n, work.k, work.groups, work.split_k, work.sums_out);
  };
  return fmt::format("phase {} class {} type {} {} {} flops {} vector {} read {} written {} launched {} gradient {}",
                     static_cast<int>(kernel.phase), static_cast<int>(kernel.kind), static_cast<int>(kernel.dtype),
                     product(kernel.cube), product(kernel.second_cube == nullptr ? CubeWork{} : *kernel.second_cube),
                     kernel.flops, kernel.vector_elements, kernel.read, kernel.written,
                     static_cast<int>(kernel.launched), kernel.gradient);
}

void expect_same(const Graph& from_file, const Graph& of_zoo, const LoweringOptions& options) {
  const Program ours = lower(from_file, options);
  const Program theirs = lower(of_zoo, options);
  for (std::size_t i = 0; i < std::min(ours.kernels.size(), theirs.kernels.size()); ++i) {
    ASSERT_EQ(text_of(ours.kernels[i]), text_of(theirs.kernels[i]))
        << "kernel " << i << ": " << ours.kernels[i].name << " | " << theirs.kernels[i].name;
  }
  EXPECT_EQ(ours.kernels.size(), theirs.kernels.size());
  ASSERT_EQ(ours.gradients.size(), theirs.gradients.size());
  for (std::size_t i = 0; i < ours.gradients.size(); ++i) {
    EXPECT_EQ(ours.gradients[i].elements, theirs.gradients[i].elements);
    EXPECT_EQ(ours.gradients[i].parameter, theirs.gradients[i].parameter);
    EXPECT_EQ(ours.gradients[i].kernel, theirs.gradients[i].kernel);
    EXPECT_EQ(ours.gradients[i].name, theirs.gradients[i].name);
  }
}

class ZooAsOnnx : public testing::TestWithParam<ModelOptions> {};

TEST_P(ZooAsOnnx, LaunchesTheSameKernels) {
  const Graph of_zoo = make_model(GetParam());
  for (const Style style : {Style::whole, Style::decomposed}) {
    const Graph from_file =
        import_graph(saved(write_zoo_graph(of_zoo, style)), {.batch = GetParam().batch, .unsupported = {}});
    EXPECT_EQ(from_file.parameter_elements(), of_zoo.parameter_elements());
    // By their names, features.0 and features.18 of MobileNetV2 are layers too.
    EXPECT_EQ(from_file.layers, of_zoo.layers + (GetParam().name == "mobilenet_v2" ? 2 : 0));
    EXPECT_EQ(model_flops(from_file, true), model_flops(of_zoo, true));
    for (const bool fused : {false, true}) {
      SCOPED_TRACE(fmt::format("style {}, fused attention {}", static_cast<int>(style), fused));
      expect_same(from_file, of_zoo, {.fused_attention = fused});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ZooAsOnnx,
    testing::Values(ModelOptions{.name = "resnet50", .batch = 8}, ModelOptions{.name = "resnet18", .batch = 2},
                    ModelOptions{.name = "mobilenet_v2", .batch = 4}, ModelOptions{.name = "vgg16", .batch = 2},
                    ModelOptions{.name = "vit-b16", .batch = 2}, ModelOptions{.name = "gpt2-small", .batch = 2},
                    ModelOptions{.name = "bert-base", .batch = 3},
                    ModelOptions{.name = "llama2-7b", .batch = 2, .layers = 2},
                    ModelOptions{.name = "llama2-70b", .batch = 1, .sequence = 128, .layers = 2}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
      return name;
    });

TEST(OnnxImport, BatchAndOtherSymbolsHaveTheSizesThatAreGiven) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", "length", 8});
  const std::string product = writer.node("MatMul", "fc", {"x", writer.weight("fc.weight", {8, 10})});
  writer.node_to("y", "Identity", "last", {product});
  writer.output("y");
  const std::string path = saved(writer.finish());
  const Graph graph = import_graph(path, {.batch = 4, .dims = {{"length", 5}}});
  EXPECT_EQ(graph.operators.back().kind, OperatorKind::loss);
  const Shape& logits = graph.tensor(graph.operators.back().inputs[0]).shape;
  EXPECT_EQ(logits, (Shape{20, 10}));
  EXPECT_EQ(graph.batch(), 4U);
}

TEST(OnnxImport, WhatTheZooHasNoOperatorForBecomesWorkOfTheVectorUnit) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 8});
  const std::string hidden = writer.node("Gemm", "fc", {"x", writer.weight("fc.weight", {16, 8})}, {attr("transB", 1)});
  const std::string gate = writer.node("Sigmoid", "gate", {hidden});
  const std::string product = writer.node("Mul", "product", {hidden, gate});
  const std::string scaled = writer.node("Mul", "scaled", {product, writer.weight("scale", {16})});
  writer.node_to("y", "Gemm", "head", {scaled, writer.weight("head.weight", {16, 4})});
  writer.output("y");
  const Graph graph = import_graph(saved(writer.finish()), {.batch = 2});
  std::vector<std::string> kinds;
  for (const Operator& op : graph.operators) kinds.emplace_back(name_of(op.kind));
  EXPECT_THAT(kinds, testing::ElementsAre("input", "linear", "vector", "vector", "vector", "linear", "loss"));
  // 4 operations per element forward, 3 backward; with the result for the gradient.
  EXPECT_EQ(graph.operators[2].work.forward, 4U * 2 * 16);
  EXPECT_EQ(graph.operators[2].work.backward, 3U * 2 * 16);
  EXPECT_EQ(graph.parameters.size(), 3U);
  EXPECT_EQ(graph.parameters[1].name, "scale");
  const Program program = lower(graph, {});
  EXPECT_EQ(program.gradients.size(), 3U);
}

TEST(OnnxImport, ProductsOfTwoTensorsAreProductsBothWays) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 6, 8});
  const std::string a = writer.node("MatMul", "a", {"x", writer.weight("a.weight", {8, 16})});
  const std::string b = writer.node("MatMul", "b", {"x", writer.weight("b.weight", {8, 16})});
  const std::string turned = writer.node("Transpose", "turned", {b}, {attrs("perm", {0, 2, 1})});
  writer.node_to("y", "MatMul", "scores", {a, turned});
  writer.output("y");
  const Graph graph = import_graph(saved(writer.finish()), {.batch = 3});
  const Operator& scores = graph.operators[graph.operators.size() - 2];
  EXPECT_EQ(scores.kind, OperatorKind::product);
  EXPECT_EQ(scores.product.m, 6U);
  EXPECT_EQ(scores.product.n, 6U);
  EXPECT_EQ(scores.product.k, 16U);
  EXPECT_EQ(scores.product.groups, 3U);
  Flops products = 0;
  for (const Kernel& kernel : lower(graph, {}).kernels) {
    if (kernel.name.starts_with("scores:"))
      products += static_cast<Flops>(kernel.cube.m * kernel.cube.n * kernel.cube.k * kernel.cube.groups);
  }
  EXPECT_EQ(products, 3.0 * 3 * 6 * 6 * 16);
}

// As torch.nn.MultiheadAttention is exported: positions before samples, one projection for all three, heads and samples
// in one axis, and weights with made-up names.
TEST(OnnxImport, AttentionWithPositionsInFrontIsAttention) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 6, 16});
  const auto layer = [&](const std::string& name, const std::string& from, int number) {
    const std::string suffix = std::to_string(number);
    const std::string turned = writer.node("Transpose", name + "turned", {from}, {attrs("perm", {1, 0, 2})});
    const std::string product =
        writer.node("MatMul", name + "in_proj", {turned, writer.weight("onnx::MatMul_" + suffix, {16, 48})});
    const std::string all = writer.node("Reshape", name + "apart", {product, writer.integers("apart", {6, -1, 3, 16})});
    const std::string first = writer.node("Transpose", name + "three", {all}, {attrs("perm", {2, 0, 1, 3})});
    std::vector<std::string> parts;
    for (int part = 0; part < 3; ++part) {
      const std::string part_name = name + "part" + std::to_string(part);
      const std::string one =
          writer.node("Gather", part_name, {first, writer.integers("index" + std::to_string(part), {part}, true)},
                      {attr("axis", 0)});
      const std::string heads =
          writer.node("Reshape", part_name + "_heads", {one, writer.integers("heads", {6, -1, 8})});
      parts.push_back(writer.node("Transpose", part_name + "_turned", {heads}, {attrs("perm", {1, 0, 2})}));
    }
    const std::string query = writer.node("Mul", name + "scaled", {parts[0], writer.real("scale", 0.35F)});
    const std::string key = writer.node("Transpose", name + "key", {parts[1]}, {attrs("perm", {0, 2, 1})});
    const std::string scores = writer.node("MatMul", name + "scores", {query, key});
    const std::string weights = writer.node("Softmax", name + "softmax", {scores}, {attr("axis", -1)});
    const std::string context = writer.node("MatMul", name + "context", {weights, parts[2]});
    const std::string back = writer.node("Transpose", name + "back", {context}, {attrs("perm", {1, 0, 2})});
    const std::string flat = writer.node("Reshape", name + "flat", {back, writer.integers("flat", {-1, 16})});
    const std::string out =
        writer.node("Gemm", name + "out_proj", {flat, writer.weight("onnx::Gemm_" + suffix, {16, 16})});
    const std::string shaped = writer.node("Reshape", name + "shaped", {out, writer.integers("shaped", {6, -1, 16})});
    return writer.node("Transpose", name + "last", {shaped}, {attrs("perm", {1, 0, 2})});
  };
  const std::string inside = layer("/encoder/layers.1/", layer("/encoder/layers.0/", "x", 1), 2);
  writer.node_to("y", "MatMul", "/head/MatMul", {inside, writer.weight("head.weight", {16, 4})});
  writer.output("y");
  const Graph graph = import_graph(saved(writer.finish()), {.batch = 3});
  std::vector<const Operator*> found;
  for (const Operator& op : graph.operators) {
    if (op.kind == OperatorKind::attention) found.push_back(&op);
    EXPECT_NE(op.kind, OperatorKind::product) << op.name;
  }
  ASSERT_EQ(found.size(), 2U);
  for (const Operator* const op : found) {
    EXPECT_EQ(op->sequence, 6U);
    EXPECT_EQ(op->heads, 2U);
    EXPECT_EQ(op->inputs.size(), 1U);
    EXPECT_FALSE(op->causal);
    EXPECT_EQ(op->shape(), (Shape{18, 16}));
  }
  EXPECT_EQ(graph.layers, 2U);
  EXPECT_EQ(graph.operators.back().layer, no_layer);
  EXPECT_EQ(graph.parameter_elements(), 2U * (16 * 48 + 16 * 16) + 16 * 4);
  EXPECT_EQ(lower(graph, {}).gradients.size(), 5U);
}

TEST(OnnxImport, UnknownOperatorsTakeTheDurationThatIsGiven) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 8});
  const std::string hidden = writer.node("Gemm", "fc", {"x", writer.weight("fc.weight", {8, 8})});
  const std::string other = writer.node("Fancy", "odd", {hidden}, {}, "com.example");
  writer.node_to("y", "Gemm", "head", {other, writer.weight("head.weight", {8, 4})});
  writer.output("y");
  const std::string path = saved(writer.finish());
  const Graph graph = import_graph(path, {.batch = 2, .unsupported = 10e-6});
  Seconds forward = 0;
  Seconds backward = 0;
  for (const Kernel& kernel : lower(graph, {}).kernels) {
    if (kernel.name == "odd:forward") forward = kernel.duration;
    if (kernel.name == "odd:gradient") backward = kernel.duration;
  }
  EXPECT_DOUBLE_EQ(forward, 10e-6);
  EXPECT_DOUBLE_EQ(backward, 20e-6);
}

std::string message_of(const std::string& path, const ImportOptions& options = {.batch = 2}) {
  try {
    static_cast<void>(import_graph(path, options));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "onnx");
    EXPECT_THAT(error.what(), HasSubstr("network.onnx"));
    return error.what();
  }
  return "no error";
}

ModelWriter perceptron(std::int64_t set = 17, const Dim& batch = "batch") {
  ModelWriter writer(set);
  writer.input("x", 1, {batch, 8});
  writer.node_to("y", "Gemm", "fc", {"x", writer.weight("fc.weight", {8, 4})});
  writer.output("y");
  return writer;
}

TEST(OnnxImport, BadFilesAreRefusedWithTheirNode) {
  EXPECT_THAT(message_of(saved("this is no model")), HasSubstr("is no file of ONNX"));
  EXPECT_THAT(message_of(saved("")), HasSubstr("no graph with nodes"));
  const std::string whole = perceptron().finish();
  for (const std::size_t bytes : {whole.size() - 1, whole.size() / 2, whole.size() - 7}) {
    EXPECT_THAT(message_of(saved(whole.substr(0, bytes))), HasSubstr("onnx"));
  }
  EXPECT_THAT(message_of(saved(perceptron(25).finish())), HasSubstr("operator set 25 of ONNX; accepted: 1 to 21"));
  EXPECT_THAT(message_of(saved(perceptron().finish()), {.batch = 2, .dims = {{"length", 3}}}),
              HasSubstr("no input has such a dimension; there are: batch"));

  ModelWriter missing;
  missing.input("x", 1, {"batch", 8});
  missing.node_to("y", "Gemm", "fc", {"nobody", missing.weight("fc.weight", {8, 4})});
  missing.output("y");
  EXPECT_THAT(message_of(saved(missing.finish())), HasSubstr("node 'fc' (Gemm): reads 'nobody'"));

  ModelWriter cycle;
  cycle.input("x", 1, {"batch", 8});
  cycle.node_to("a", "Add", "first", {"x", "b"});
  cycle.node_to("b", "Relu", "second", {"a"});
  cycle.node_to("y", "Gemm", "fc", {"b", cycle.weight("fc.weight", {8, 4})});
  cycle.output("y");
  EXPECT_THAT(message_of(saved(cycle.finish())), HasSubstr("is part of a cycle"));

  ModelWriter shapes;
  shapes.input("x", 1, {"batch", 8});
  shapes.node_to("y", "Gemm", "fc", {"x", shapes.weight("fc.weight", {9, 4})});
  shapes.output("y");
  EXPECT_THAT(message_of(saved(shapes.finish())), HasSubstr("node 'fc' (Gemm)"));

  ModelWriter odd;
  odd.input("x", 1, {"batch", 8});
  odd.node_to("y", "Gemm", "fc", {odd.node("Fancy", "odd", {"x"}, {}, "com.example"), odd.weight("w", {8, 4})});
  odd.output("y");
  const std::string message = message_of(saved(odd.finish()));
  EXPECT_THAT(message, HasSubstr("node 'odd' (Fancy)"));
  EXPECT_THAT(message, HasSubstr("domain com.example, set none"));

  ModelWriter symbol;
  symbol.input("x", 1, {"batch", "length", 8});
  symbol.node_to("y", "MatMul", "fc", {"x", symbol.weight("w", {8, 4})});
  symbol.output("y");
  EXPECT_THAT(message_of(saved(symbol.finish())),
              HasSubstr("does not say how large length is; give --onnx-dim length=128"));
}

}  // namespace
}  // namespace hcclsim::models::onnx
