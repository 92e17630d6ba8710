#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "models/onnx/import.hpp"
#include "tests/models/onnx/wire.hpp"

// Pools, and images with their channels behind.
namespace hcclsim::models::onnx {
namespace {

Graph of_images(ModelWriter& writer, const std::string& last, std::int64_t features) {
  const std::string flat = writer.node("Flatten", "flat", {last});
  writer.node_to("y", "Gemm", "head", {flat, writer.weight("head.weight", {features, 4})});
  writer.output("y");
  return import_graph(writer.save(testing::TempDir() + "images.onnx"), {.batch = 2});
}

Graph pooled(const std::vector<Attr>& attributes, std::int64_t features) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 3, 5, 5});
  const std::string conv = writer.node("Conv", "conv", {"x", writer.weight("conv.weight", {3, 3, 1, 1})});
  return of_images(writer, writer.node("AveragePool", "pool", {conv}, attributes), features);
}

TEST(OnnxImages, PoolsCountWhatIsInTheImage) {
  // Windows of 3 at -1, 1 and 3 of 5 pixels have 2, 3 and 2 of them.
  const Graph padded =
      pooled({attrs("kernel_shape", {3, 3}), attrs("strides", {2, 2}), attrs("pads", {1, 1, 1, 1})}, 27);
  EXPECT_EQ(padded.operators[2].kind, OperatorKind::vector);
  EXPECT_EQ(padded.operators[2].work.forward, 2U * 3 * 7 * 7);
  const Graph counted = pooled({attrs("kernel_shape", {3, 3}), attrs("strides", {2, 2}), attrs("pads", {1, 1, 1, 1}),
                                attr("count_include_pad", 1)},
                               27);
  EXPECT_EQ(counted.operators[2].work.forward, 2U * 3 * 7 * 7);
  // Windows of 2 at 0, 2 and 4, the last of which is half beyond the image.
  const Graph ceiled = pooled({attrs("kernel_shape", {2, 2}), attrs("strides", {2, 2}), attr("ceil_mode", 1)}, 27);
  EXPECT_EQ(ceiled.operators[2].work.forward, 2U * 3 * 5 * 5);
  const Graph same =
      pooled({attrs("kernel_shape", {4, 4}), attrs("strides", {3, 3}), {.name = "auto_pad", .text = "SAME_UPPER"}}, 12);
  // Two windows of 4 for 5 pixels, one pixel before and one behind them: 3 and 3 pixels.
  EXPECT_EQ(same.operators[2].work.forward, 2U * 3 * 6 * 6);
}

TEST(OnnxImages, WindowsLargerThanTheImageAreGlobal) {
  const Graph large = pooled({attrs("kernel_shape", {9, 9}), attrs("pads", {2, 2, 2, 2})}, 3);
  EXPECT_EQ(large.operators[2].kind, OperatorKind::average_pool);
  EXPECT_EQ(large.operators[2].shape(), (Shape{2, 3, 1, 1}));
}

Graph channels(bool last, bool scaled) {
  ModelWriter writer;
  writer.input("x", 1, last ? std::vector<Dim>{"batch", 8, 6, 3} : std::vector<Dim>{"batch", 3, 8, 6});
  std::string x = "x";
  if (scaled) x = writer.node("Mul", "scale", {x, writer.real("factor", 0.5F)});
  if (last) x = writer.node("Transpose", "turned", {x}, {attrs("perm", {0, 3, 1, 2})});
  const std::string conv = writer.node("Conv", "conv", {x, writer.weight("conv.weight", {4, 3, 3, 3})});
  const std::string pool = writer.node("GlobalAveragePool", "pool", {conv});
  return of_images(writer, pool, 4);
}

TEST(OnnxImages, ChannelsBehindPixelsAreTheSameNetwork) {
  for (const bool scaled : {false, true}) {
    std::array<std::vector<std::string>, 2> kinds;
    for (const bool last : {false, true}) {
      const Graph graph = channels(last, scaled);
      for (const Operator& op : graph.operators) {
        // Other axes for the same numbers take no time.
        if (op.kind == OperatorKind::reshape) continue;
        kinds.at(last ? 1 : 0).emplace_back(name_of(op.kind));
        if (op.kind == OperatorKind::convolution) {
          EXPECT_EQ(op.shape(), (Shape{2, 4, 6, 4}));
        }
      }
      EXPECT_EQ(graph.operators[0].shape(), (Shape{2, 3, 8, 6}));
    }
    EXPECT_EQ(kinds[0], kinds[1]);
  }
}

TEST(OnnxImages, ConstantsAreComputed) {
  ModelWriter writer;
  writer.input("x", 1, {"batch", 3, 8, 6});
  // Places of numbers that are not zero in the shape minus its first size: 1, 2 and 3; the last two of them backwards.
  const std::string shape = writer.node("Shape", "shape", {"x"});
  const std::string left = writer.node("Sub", "left", {shape, writer.integers("first", {2, 2, 2, 2})});
  const std::string places = writer.node("NonZero", "places", {left});
  const std::string list = writer.node("Squeeze", "list", {places, writer.integers("axis", {0})});
  const std::string back = writer.node("Slice", "back",
                                       {list, writer.integers("from", {-1}), writer.integers("to", {-3}),
                                        writer.integers("axis", {0}), writer.integers("step", {-1})});
  // 3 + 2 = 5 features that are not there, plus 139: 144 of them.
  const std::string sum = writer.node("ReduceSum", "sum", {back});
  const std::string all = writer.node("Add", "all", {sum, writer.integers("rest", {139})});
  const std::string size = writer.node("Concat", "size", {writer.integers("rows", {-1}), all}, {attr("axis", 0)});
  const std::string flat = writer.node("Reshape", "flat", {"x", size});
  writer.node_to("y", "MatMul", "head", {flat, writer.weight("head.weight", {144, 4})});
  writer.output("y");
  const Graph graph = import_graph(writer.save(testing::TempDir() + "images.onnx"), {.batch = 2});
  EXPECT_EQ(graph.tensor(graph.operators.back().inputs[0]).shape, (Shape{2, 4}));
}

}  // namespace
}  // namespace hcclsim::models::onnx
