#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/counter_random.hpp"
#include "device/numerics/dropout.hpp"
#include "models/graph_builder.hpp"
#include "tests/device/numerics/reference_comparison.hpp"

/// Every kind of layer in small networks of random sizes (fixed seeds) against the reference in double precision.
namespace hcclsim::device {
namespace {

using models::Graph;
using models::GraphBuilder;
using models::OperatorId;

/// Random sizes of one network.
class Sizes {
 public:
  explicit Sizes(std::uint64_t seed) : seed_(seed) {}
  /// One of first … last.
  std::uint32_t from(std::uint32_t first, std::uint32_t last) {
    return first + static_cast<std::uint32_t>(counter_bits(seed_, 77, next_++) % (last - first + 1));
  }
  bool flip() { return from(0, 1) == 1; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

Graph features(Sizes& sizes, const std::function<OperatorId(GraphBuilder&, OperatorId)>& layer) {
  GraphBuilder builder("features", {.batch = sizes.from(1, 6), .channels = sizes.from(1, 40)});
  OperatorId x = builder.linear("first", GraphBuilder::input(), sizes.from(1, 70), sizes.flip());
  x = layer(builder, x);
  x = builder.linear("last", x, sizes.from(2, 11), true);
  return std::move(builder).finish(x);
}

/// Images between two convolutions, which like other layouts than the row-major one.
Graph images(Sizes& sizes, const std::function<OperatorId(GraphBuilder&, OperatorId)>& layer) {
  const std::uint32_t side = sizes.from(7, 12);
  GraphBuilder builder("images",
                       {.batch = sizes.from(1, 3), .channels = sizes.from(1, 4), .height = side, .width = side});
  const models::Window window{.kernel = 3, .stride = sizes.from(1, 2), .padding = sizes.from(0, 1)};
  OperatorId x = builder.convolution("first", GraphBuilder::input(),
                                     {.channels = sizes.from(1, 33), .window = window, .bias = sizes.flip()});
  x = layer(builder, x);
  x = builder.convolution("second", x, {.channels = sizes.from(1, 20), .window = {.kernel = 2}, .bias = true});
  x = builder.flatten("flatten", builder.average_pool("pool", x, 1));
  x = builder.linear("last", x, sizes.from(2, 11), true);
  return std::move(builder).finish(x);
}

Graph sequences(Sizes& sizes, const std::function<OperatorId(GraphBuilder&, OperatorId)>& layer) {
  const std::uint32_t heads = sizes.from(1, 5);
  const std::uint32_t width = heads * sizes.from(1, 9);
  const std::uint32_t vocabulary = sizes.from(2, 30);
  GraphBuilder builder = GraphBuilder::of_tokens("sequences", sizes.from(1, 3), sizes.from(1, 19));
  OperatorId x = builder.token_embedding("table", GraphBuilder::input(), vocabulary, width);
  x = builder.position_embedding("positions", x);
  x = builder.linear("qkv", x, 3 * width, sizes.flip());
  x = builder.attention("attention", x, heads, sizes.flip());
  x = layer(builder, x);
  x = builder.linear("last", x, vocabulary, false);
  return std::move(builder).finish(x);
}

class Layers : public testing::TestWithParam<std::uint64_t> {
 protected:
  Sizes sizes_{GetParam()};
};

TEST_P(Layers, Gelu) {
  const auto gelu = [](GraphBuilder& builder, OperatorId x) { return builder.gelu("gelu", x); };
  expect_as_reference(features(sizes_, gelu), GetParam());
  expect_as_reference(images(sizes_, gelu), GetParam());
}

TEST_P(Layers, LayerNorm) {
  const auto norm = [](GraphBuilder& builder, OperatorId x) { return builder.layer_norm("norm", x); };
  expect_as_reference(features(sizes_, norm), GetParam());
}

TEST_P(Layers, ReluAndReluOfSix) {
  const auto relus = [](GraphBuilder& builder, OperatorId x) { return builder.relu("1", builder.relu6("6", x)); };
  expect_as_reference(features(sizes_, relus), GetParam());
  expect_as_reference(images(sizes_, relus), GetParam());
}

TEST_P(Layers, Residual) {
  const auto block = [](GraphBuilder& builder, OperatorId x) {
    const OperatorId branch = builder.gelu("branch", x);
    const OperatorId sum = builder.relu("relu", builder.add("sum", branch, x));
    return builder.add("again", sum, builder.dropout("drop", sum, 0.25F));
  };
  expect_as_reference(features(sizes_, block), GetParam());
  expect_as_reference(images(sizes_, block), GetParam());
}

TEST_P(Layers, NormsAndPools) {
  const auto block = [](GraphBuilder& builder, OperatorId x) {
    x = builder.relu("relu", builder.batch_norm("norm", x));
    return builder.max_pool("pool", x, {.kernel = 3, .stride = 1, .padding = 1});
  };
  expect_as_reference(images(sizes_, block), GetParam());
  const auto adaptive = [](GraphBuilder& builder, OperatorId x) { return builder.average_pool("to3", x, 3); };
  expect_as_reference(images(sizes_, adaptive), GetParam());
}

TEST_P(Layers, Dropout) {
  const float rate = 0.1F * static_cast<float>(sizes_.from(0, 9));
  const auto drop = [=](GraphBuilder& builder, OperatorId x) { return builder.dropout("drop", x, rate); };
  expect_as_reference(features(sizes_, drop), GetParam());
  expect_as_reference(images(sizes_, drop), GetParam());
  expect_as_reference(sequences(sizes_, drop), GetParam());
}

TEST_P(Layers, Sequences) {
  expect_as_reference(sequences(sizes_, [](GraphBuilder&, OperatorId x) { return x; }), GetParam());
  expect_as_reference(sequences(sizes_,
                                [](GraphBuilder& builder, OperatorId x) {
                                  const OperatorId norm = builder.layer_norm("norm", x);
                                  return builder.add("sum", builder.gelu("gelu", norm), x);
                                }),
                      GetParam());
}

TEST_P(Layers, LabelSmoothing) {
  const float smoothing = 0.1F * static_cast<float>(sizes_.from(1, 9));
  const auto relu = [](GraphBuilder& builder, OperatorId x) { return builder.relu("relu", x); };
  expect_as_reference(features(sizes_, relu), GetParam(), {.label_smoothing = smoothing});
}

INSTANTIATE_TEST_SUITE_P(Seeds, Layers, testing::Range(std::uint64_t{1}, std::uint64_t{13}));

}  // namespace
}  // namespace hcclsim::device
