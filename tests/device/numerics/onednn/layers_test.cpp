#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/counter_random.hpp"
#include "device/numerics/loops/dropout.hpp"
#include "models/graph_builder.hpp"
#include "tests/device/numerics/onednn/reference_comparison.hpp"

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
  GraphBuilder builder("features", {sizes.from(1, 6), sizes.from(1, 40)});
  OperatorId x = builder.linear("first", GraphBuilder::input(), sizes.from(1, 70), sizes.flip());
  x = layer(builder, x);
  x = builder.linear("last", x, sizes.from(2, 11), true);
  return std::move(builder).finish(x);
}

/// Images between two convolutions, which like other layouts than the row-major one.
Graph images(Sizes& sizes, const std::function<OperatorId(GraphBuilder&, OperatorId)>& layer) {
  const std::uint32_t side = sizes.from(7, 12);
  GraphBuilder builder("images", {sizes.from(1, 3), sizes.from(1, 4), side, side});
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
  x = builder.attention("attention", x, {.heads = heads, .causal = sizes.flip()});
  x = layer(builder, x);
  x = builder.linear("last", x, vocabulary, false);
  return std::move(builder).finish(x);
}

/// Runs `check(sizes, seed)` for twelve seeds.
template <typename Check>
void for_seeds(Check check) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Sizes sizes(seed);
    check(sizes, seed);
  }
}

TEST(Layers, Gelu) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const auto gelu = [](GraphBuilder& builder, OperatorId x) { return builder.gelu("gelu", x); };
    expect_as_reference(features(sizes, gelu), seed);
    expect_as_reference(images(sizes, gelu), seed);
  });
}

TEST(Layers, LayerNorm) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const auto norm = [](GraphBuilder& builder, OperatorId x) { return builder.layer_norm("norm", x); };
    expect_as_reference(features(sizes, norm), seed);
  });
}

TEST(Layers, ReluAndReluOfSix) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const auto relus = [](GraphBuilder& builder, OperatorId x) { return builder.relu("1", builder.relu6("6", x)); };
    expect_as_reference(features(sizes, relus), seed);
    expect_as_reference(images(sizes, relus), seed);
  });
}

TEST(Layers, Residual) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const auto block = [](GraphBuilder& builder, OperatorId x) {
      const OperatorId branch = builder.gelu("branch", x);
      const OperatorId sum = builder.relu("relu", builder.add("sum", branch, x));
      return builder.add("again", sum, builder.dropout("drop", sum, 0.25F));
    };
    expect_as_reference(features(sizes, block), seed);
    expect_as_reference(images(sizes, block), seed);
  });
}

TEST(Layers, NormsAndPools) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const auto block = [](GraphBuilder& builder, OperatorId x) {
      x = builder.relu("relu", builder.batch_norm("norm", x));
      return builder.max_pool("pool", x, {.kernel = 3, .stride = 1, .padding = 1});
    };
    expect_as_reference(images(sizes, block), seed);
    const auto adaptive = [](GraphBuilder& builder, OperatorId x) { return builder.average_pool("to3", x, 3); };
    expect_as_reference(images(sizes, adaptive), seed);
  });
}

TEST(Layers, Dropout) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const float rate = 0.1F * static_cast<float>(sizes.from(0, 9));
    const auto drop = [=](GraphBuilder& builder, OperatorId x) { return builder.dropout("drop", x, rate); };
    expect_as_reference(features(sizes, drop), seed);
    expect_as_reference(images(sizes, drop), seed);
    expect_as_reference(sequences(sizes, drop), seed);
  });
}

TEST(Layers, Sequences) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    expect_as_reference(sequences(sizes, [](GraphBuilder&, OperatorId x) { return x; }), seed);
    expect_as_reference(sequences(sizes,
                                  [](GraphBuilder& builder, OperatorId x) {
                                    const OperatorId norm = builder.layer_norm("norm", x);
                                    return builder.add("sum", builder.gelu("gelu", norm), x);
                                  }),
                        seed);
  });
}

TEST(Layers, LabelSmoothing) {
  for_seeds([](Sizes& sizes, std::uint64_t seed) {
    const float smoothing = 0.1F * static_cast<float>(sizes.from(1, 9));
    const auto relu = [](GraphBuilder& builder, OperatorId x) { return builder.relu("relu", x); };
    expect_as_reference(features(sizes, relu), seed, {.label_smoothing = smoothing});
  });
}

}  // namespace
}  // namespace hcclsim::device
