#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "models/graph_builder.hpp"
#include "tests/device/numerics/onednn/reference_comparison.hpp"
#include "tests/support/training/net_oracle.hpp"

/// Operators on images, in all their forms, against the reference in double precision: each between a convolution,
/// whose gradients depend on what the operator gives its input, and a linear operator.
namespace hcclsim::device {
namespace {

using models::GraphBuilder;
using models::OperatorId;
using models::Window;

using Middle = std::function<OperatorId(GraphBuilder&, OperatorId)>;

models::Graph between(const models::Shape& images, std::uint32_t channels, const Middle& middle) {
  GraphBuilder builder("test", images);
  const OperatorId stem =
      builder.convolution("stem", GraphBuilder::input(), {.channels = channels, .window = {}, .bias = true});
  const OperatorId flat = builder.flatten("flatten", middle(builder, stem));
  const OperatorId logits = builder.linear("fc", flat, 7, true);
  return std::move(builder).finish(logits);
}

struct Convolution {
  std::uint32_t in, out;
  Window window;
  std::uint32_t groups = 1;
  bool bias = false;
};

TEST(ImageLayers, Convolutions) {
  const std::vector<Convolution> cases{
      {4, 8, {.kernel = 3, .stride = 1, .padding = 1}},
      {16, 32, {.kernel = 3, .stride = 2, .padding = 1}},
      {32, 16, {.kernel = 1}, 1, true},
      {32, 48, {.kernel = 1, .stride = 2}},
      {24, 40, {.kernel = 1}, 1, true},
      {6, 16, {.kernel = 5}, 1, true},
      {3, 20, {.kernel = 7, .stride = 2, .padding = 3}, 1, true},
      {5, 7, {.kernel = 2, .stride = 3}},
      {16, 16, {.kernel = 3, .stride = 1, .padding = 1}, 16},
      {24, 24, {.kernel = 3, .stride = 2, .padding = 1}, 24, true},
      {10, 20, {.kernel = 3, .stride = 1, .padding = 1}, 10},
      {32, 64, {.kernel = 3, .stride = 1, .padding = 1}, 4},
      {12, 18, {.kernel = 3, .stride = 2, .padding = 2}, 3, true},
      {32, 32, {.kernel = 11, .stride = 4, .padding = 5}, 2},
  };
  std::uint64_t seed = 11;
  for (const Convolution& one : cases) {
    SCOPED_TRACE(fmt::format("{} to {} channels, kernel {}, stride {}, padding {}, {} groups", one.in, one.out,
                             one.window.kernel, one.window.stride, one.window.padding, one.groups));
    const auto middle = [&](GraphBuilder& builder, OperatorId from) {
      return builder.convolution("middle", from,
                                 {.channels = one.out, .window = one.window, .groups = one.groups, .bias = one.bias});
    };
    expect_as_reference(between({3, 2, 13, 10}, one.in, middle), seed++);
  }
}

TEST(ImageLayers, MaxPools) {
  std::uint64_t seed = 31;
  for (const Window& window : {Window{2, 2, 0}, Window{3, 2, 1}, Window{3, 2, 0}, Window{2, 3, 1}}) {
    for (const std::uint32_t channels : {16U, 6U}) {
      SCOPED_TRACE(fmt::format("{} channels, kernel {}, stride {}", channels, window.kernel, window.stride));
      const auto middle = [&](GraphBuilder& builder, OperatorId from) {
        return builder.max_pool("middle", from, window);
      };
      expect_as_reference(between({2, 3, 9, 12}, channels, middle), seed++);
    }
  }
}

TEST(ImageLayers, AveragePoolsOfAnySize) {
  std::uint64_t seed = 51;
  for (const std::uint32_t size : {1U, 2U, 3U, 4U, 6U, 7U, 12U, 13U}) {
    SCOPED_TRACE(size);
    const auto middle = [&](GraphBuilder& builder, OperatorId from) {
      return builder.average_pool("middle", from, size);
    };
    expect_as_reference(between({2, 3, 6, 6}, 18, middle), seed);
    expect_as_reference(between({2, 3, 2, 6}, 18, middle), seed++);
  }
}

TEST(ImageLayers, BatchNormAlonePlusReluPlusRelu6) {
  std::uint64_t seed = 71;
  for (const std::uint32_t channels : {16U, 24U, 5U}) {
    SCOPED_TRACE(channels);
    const models::Shape images{4, 3, 5, 6};
    const auto alone = [](GraphBuilder& builder, OperatorId from) { return builder.batch_norm("bn", from); };
    const auto relu = [&](GraphBuilder& builder, OperatorId from) {
      return builder.relu("relu", alone(builder, from));
    };
    const auto relu6 = [&](GraphBuilder& builder, OperatorId from) {
      return builder.relu6("relu6", alone(builder, from));
    };
    expect_as_reference(between(images, channels, alone), seed++);
    expect_as_reference(between(images, channels, relu), seed++);
    expect_as_reference(between(images, channels, relu6), seed++);
  }
}

/// Features far beyond both bounds of ReLU6.
TEST(ImageLayers, Relu6PassesNothingBeyondItsBounds) {
  GraphBuilder builder("test", {4, 3, 4, 4});
  OperatorId x = GraphBuilder::input();
  for (const char* name : {"c1", "c2", "c3", "c4"}) {  // each makes the values about 1.4 times as large
    x = builder.convolution(name, x, {.channels = 64, .window = {}});
  }
  const OperatorId bounded = builder.relu6("relu6", x);
  const OperatorId logits = builder.linear("fc", builder.flatten("flatten", bounded), 5, true);
  const models::Graph graph = std::move(builder).finish(logits);
  const test::ReferenceStep step =
      test::reference_step(graph, test::initial_parameters(graph, 5), test::oracle_batch(graph, 5, 0));
  EXPECT_THAT(step.outputs[bounded], testing::Contains(6.0));
  EXPECT_THAT(step.outputs[bounded], testing::Contains(0.0));
  expect_as_reference(graph, 5);
}

/// Tensors with several consumers: their gradients add up, and nothing is written over that is still needed.
TEST(ImageLayers, Forks) {
  const models::Shape images{2, 3, 6, 6};
  const models::ConvolutionOptions same{.channels = 16, .window = {.kernel = 3, .stride = 1, .padding = 1}};
  const std::vector<Middle> cases{
      [](GraphBuilder& b, OperatorId x) { return b.add("twice", x, x); },
      [](GraphBuilder& b, OperatorId x) { return b.relu("relu", b.add("twice", x, x)); },
      [&](GraphBuilder& b, OperatorId x) { return b.add("add", b.convolution("c", x, same), x); },
      [&](GraphBuilder& b, OperatorId x) { return b.add("add", x, b.convolution("c", x, same)); },
      [&](GraphBuilder& b, OperatorId x) { return b.relu("relu", b.add("add", b.relu("r", x), x)); },
      [&](GraphBuilder& b, OperatorId x) { return b.add("add", b.relu6("r", x), b.relu("s", x)); },
      [&](GraphBuilder& b, OperatorId x) {
        const OperatorId y = b.add("add1", b.convolution("c1", x, same), x);
        const OperatorId z = b.relu("relu", b.add("add2", b.convolution("c2", y, same), y));
        return b.add("add3", b.add("add4", x, z), y);
      },
      [&](GraphBuilder& b, OperatorId x) {
        const OperatorId y = b.relu("relu1", b.batch_norm("bn1", x));
        const OperatorId z = b.batch_norm("bn2", b.convolution("c", y, same));
        return b.add("add2", b.relu("relu2", b.add("add1", z, y)), b.batch_norm("bn3", z));
      },
      [&](GraphBuilder& b, OperatorId x) {
        const OperatorId pool = b.max_pool("pool", x, {.kernel = 3, .stride = 1, .padding = 1});
        return b.add("add", b.relu("relu", b.add("sum", pool, x)), b.add("sum2", pool, x));
      },
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    expect_as_reference(between(images, 16, cases[i]), 91 + i);
  }
}

}  // namespace
}  // namespace hcclsim::device
