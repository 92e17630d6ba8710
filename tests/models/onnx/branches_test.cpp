#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// If, of which one branch is taken.
namespace hcclsim::models::onnx {
namespace {

using ::testing::HasSubstr;

Attr branch(const std::string& name, std::vector<Message> nodes) {
  return {.name = name, .graph = true, .graph_nodes = std::move(nodes), .graph_output = {"?", "?"}};
}

/// The rows of x twice or once, by the number of its columns.
Graph doubled_if(std::int64_t columns, const std::string& condition_of = "x") {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 8});
  writer.input("flag", 1, {"batch", 8});
  const std::string shape = writer.node("Shape", "shape", {condition_of});
  const std::string last = writer.node("Gather", "last", {shape, writer.integers("at", {-1}, true)}, {attr("axis", 0)});
  const std::string is = writer.node("Equal", "is", {last, writer.integers("columns", {columns}, true)});
  writer.weight("once.weight", {8, 4});
  writer.weight("twice.weight", {16, 4});
  // Both branches have a tensor of the name that the graph has, too.
  const Message joined = node_of("Concat", "joined", {"x", "x"}, {"shape:out2"}, {attr("axis", -1)});
  const Message inner =
      node_of("If", "inner", {is}, {"out"},
              {branch("then_branch", {node_of("MatMul", "twice", {"shape:out2", "twice.weight"}, {"out"})}),
               branch("else_branch", {node_of("Identity", "never", {"x"}, {"out"})})});
  writer.node_to("logits", "If", "choice", {is},
                 {branch("then_branch", {joined, inner}),
                  branch("else_branch", {node_of("MatMul", "once", {"x", "once.weight"}, {"out"})})});
  writer.node_to("y", "Identity", "same", {"logits"});
  writer.output("y");
  return import_graph(writer.save(testing::TempDir() + "branches.onnx"), {.batch = 2});
}

TEST(OnnxBranches, TheOneOfAKnownConditionIsTaken) {
  const Graph twice = doubled_if(8);
  ASSERT_EQ(twice.parameters.size(), 1U);
  EXPECT_EQ(twice.parameters[0].name, "twice.weight");
  EXPECT_EQ(twice.parameter_elements(), 64U);
  const Graph once = doubled_if(9);
  ASSERT_EQ(once.parameters.size(), 1U);
  EXPECT_EQ(once.parameters[0].name, "once.weight");
}

TEST(OnnxBranches, UnknownConditionsAreRefused) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 8});
  const std::string sum = writer.node("ReduceSum", "sum", {"x"}, {attr("keepdims", 0)});
  const std::string is = writer.node("Greater", "is", {sum, writer.real("zero", 0)});
  writer.node_to("y", "If", "choice", {is},
                 {branch("then_branch", {node_of("Identity", "a", {"x"}, {"out"})}),
                  branch("else_branch", {node_of("Neg", "b", {"x"}, {"out"})})});
  writer.output("y");
  try {
    static_cast<void>(import_graph(writer.save(testing::TempDir() + "branches.onnx"), {.batch = 2}));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("node 'choice' (If)"));
    EXPECT_THAT(error.what(), HasSubstr("its condition is not known before it runs"));
  }
}

TEST(OnnxBranches, OneHotRowsOfTokensAreMultiplied) {
  ModelWriter writer(13);
  writer.input("tokens", 6, {"batch", 5});
  const std::string rows =
      writer.node("OneHot", "rows", {"tokens", writer.integers("depth", {9}), writer.integers("values", {0, 1})},
                  {attr("axis", -1)});
  writer.node_to("y", "MatMul", "fc",
                 {writer.node("Cast", "cast", {rows}, {attr("to", 1)}), writer.weight("w", {9, 3})});
  writer.output("y");
  const Graph graph = import_graph(writer.save(testing::TempDir() + "branches.onnx"), {.batch = 2});
  EXPECT_EQ(graph.parameter_elements(), 27U);
  EXPECT_EQ(graph.tensor(graph.operators.back().inputs[0]).shape, (Shape{10, 3}));
}

}  // namespace
}  // namespace hcclsim::models::onnx
