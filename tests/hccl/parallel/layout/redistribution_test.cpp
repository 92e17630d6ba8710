#include "hccl/parallel/layout/redistribution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/hccl/parallel/layout/held_tensor.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Map = std::vector<std::vector<std::uint32_t>>;

/// "all_gather 0 n=2; slice 1 n=2".
std::string text(const std::vector<RedistributionStep>& steps) {
  std::vector<std::string> texts;
  for (const RedistributionStep& step : steps) {
    if (step.kind == RedistributionKind::reshape) {
      texts.push_back(fmt::format("reshape {}", fmt::join(step.after.sizes(), "x")));
    } else if (step.kind == RedistributionKind::all_to_all) {
      texts.push_back(fmt::format("all_to_all {}>{} n={}", step.split_dim, step.concat_dim, step.ranks()));
    } else {
      texts.push_back(fmt::format("{} {} n={}", name_of(step.kind), step.dim, step.ranks()));
    }
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string steps_of(const Map& from, const Map& to, bool all_to_all) {
  const DeviceMatrix devices{{2, 4}};
  const models::Shape shape{64, 64};
  return text(redistribute({devices, from, shape}, {devices, to, shape}, {.all_to_all = all_to_all}));
}

TEST(Redistribution, BetweenTwoAxesOfAMatrix) {
  const auto expect = [](const Map& from, const Map& to, const std::string& with, const std::string& without) {
    EXPECT_EQ(steps_of(from, to, true), with);
    EXPECT_EQ(steps_of(from, to, false), without);
  };
  expect({{1}, {}}, {{}, {1}}, "all_to_all 1>0 n=2", "all_gather 0 n=2; slice 1 n=2");
  expect({{1}, {0}}, {{}, {}}, "all_gather 0 n=2; all_gather 1 n=4", "all_gather 0 n=2; all_gather 1 n=4");
  expect({{}, {}}, {{1}, {0}}, "slice 0 n=2; slice 1 n=4", "slice 0 n=2; slice 1 n=4");
  expect({{1}, {0}}, {{0}, {1}}, "all_gather 0 n=2; all_to_all 0>1 n=4; slice 1 n=2",
         "all_gather 0 n=2; all_gather 1 n=4; slice 0 n=4; slice 1 n=2");
  expect({{1}, {0}}, {{0}, {}}, "all_gather 0 n=2; all_to_all 0>1 n=4",
         "all_gather 0 n=2; all_gather 1 n=4; slice 0 n=4");
  expect({{1}, {}}, {{0}, {}}, "all_gather 0 n=2; slice 0 n=4", "all_gather 0 n=2; slice 0 n=4");
  expect({{1}, {0}}, {{1}, {0}}, "", "");
}

TEST(Redistribution, StepsKnowTheirDevicesShapesAndBytes) {
  const DeviceMatrix devices{{2, 4}};
  const auto steps = redistribute({devices, {{1}, {}}, {64, 64}}, {devices, {{}, {1}}, {64, 64}}, {.all_to_all = true});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].groups(), (std::vector<std::vector<Rank>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(steps[0].before, (models::Shape{32, 64}));
  EXPECT_EQ(steps[0].after, (models::Shape{64, 32}));
  EXPECT_EQ(steps[0].bytes(4), 8192U);
  EXPECT_EQ(steps[0].sent(4), 4096U);
  const auto gather = redistribute({devices, {{}, {0}}, {64, 64}}, {devices, {{}, {}}, {64, 64}}, {});
  ASSERT_EQ(gather.size(), 1U);
  EXPECT_EQ(gather[0].bytes(4), 4096U);
  EXPECT_EQ(gather[0].sent(4), 3U * 4096U);
}

// The matrices become (2,2,2); an axis of 16 that two axes of it cut is 2×8.
TEST(Redistribution, MatricesAreFactored) {
  const TensorLayout rows{{{4, 2}}, {{1}, {}}, {16, 16}};
  const TensorLayout half_rows{{{2, 4}}, {{1}, {}}, {16, 16}};
  EXPECT_EQ(text(redistribute(rows, half_rows, {})), "reshape 1x4x16; all_gather 1 n=2; reshape 8x16");
  EXPECT_EQ(text(redistribute(rows, half_rows, {.own_axes = true})), "all_gather 0 n=2");
  EXPECT_EQ(text(redistribute(half_rows, rows, {.own_axes = true})), "slice 0 n=2");
  // The slice is inside of what the exchange cuts: it cannot be said on the axes of the tensor.
  const TensorLayout both{{{2, 4}}, {{1}, {0}}, {16, 16}};
  const std::string steps = "reshape 1x4x2x8; slice 3 n=2; all_to_all 2>1 n=2; reshape 8x4";
  EXPECT_EQ(text(redistribute(rows, both, {.all_to_all = true})), steps);
  EXPECT_EQ(text(redistribute(rows, both, {.all_to_all = true, .own_axes = true})), steps);
}

TEST(Redistribution, ReshapeMovesNothingWhereThePartsAreTheSame) {
  const DeviceMatrix devices{{4}};
  EXPECT_EQ(text(redistribute({devices, {{0}, {}, {}}, {8, 6, 5}}, {devices, {{0}, {}}, {48, 5}}, {})), "reshape 12x5");
  EXPECT_EQ(text(redistribute({devices, {{}, {0}}, {3, 8}}, {devices, {{0}}, {24}}, {})),
            "all_gather 1 n=4; reshape 24; slice 0 n=4");
  const DeviceMatrix two{{2}};
  EXPECT_EQ(text(redistribute({two, {{0}, {}}, {8, 3}}, {two, {{}, {0}}, {4, 6}}, {.all_to_all = true})),
            "reshape 2x2x3; all_to_all 1>0 n=2; reshape 4x3");
}

// A tensor of 6 as 2×3 and as 3×2 has no common shape.
TEST(Redistribution, WithoutCommonTermsThroughTheWhole) {
  const DeviceMatrix devices{{2, 3}};
  EXPECT_EQ(text(redistribute({devices, {{1}, {0}}, {2, 3}}, {devices, {{0}, {1}}, {3, 2}}, {.all_to_all = true})),
            "all_gather 0 n=2; all_gather 1 n=3; reshape 3x2; slice 0 n=3; slice 1 n=2");
  EXPECT_EQ(text(redistribute({devices, {{1}}, {6}}, {{{3, 2}}, {{1}}, {6}}, {})), "all_gather 0 n=2; slice 0 n=3");
}

TEST(Redistribution, WhatDoesNotFitIsRefused) {
  const auto message = [](const TensorLayout& from, const TensorLayout& to) {
    return test::refusal("runtime-error", [&] { (void)redistribute(from, to, {}); });
  };
  EXPECT_THAT(message(replicated({{2, 4}}, {8}), replicated({{4}}, {8})), HasSubstr("from 8 devices (2,4) to 4 (4)"));
  EXPECT_THAT(message(replicated({{4}}, {8}), replicated({{4}}, {3, 3})),
              HasSubstr("of 8 elements (8) cannot be one of 9"));
  EXPECT_THAT(message({{{4}}, {{0}}, {6}}, replicated({{4}}, {6})), HasSubstr("that a tensor has: axis 0"));
}

/// Random layouts over the same devices of a tensor, which the second one may see in another shape.
class RandomLayouts {
 public:
  explicit RandomLayouts(unsigned seed) : random_(seed) {}

  std::pair<TensorLayout, TensorLayout> draw(bool reshapes) {
    std::vector<std::uint32_t> primes;
    for (int i = 0; i < 3; ++i) primes.push_back(number(4) == 0 ? 3 : 2);
    std::vector<std::uint32_t> elements = primes;
    for (const std::uint32_t prime : primes) elements.push_back(prime);
    elements.push_back(number(2) == 0 ? 2 : 5);
    const models::Shape shape(products(elements, 3));
    const TensorLayout from = layout(products(primes, 3), shape);
    const TensorLayout to = layout(products(primes, 3), reshapes ? models::Shape(products(elements, 3)) : shape);
    return {from, to};
  }

 private:
  std::uint32_t number(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

  /// Factors spread over so many numbers.
  std::vector<std::uint32_t> products(const std::vector<std::uint32_t>& factors, std::uint32_t most) {
    std::vector<std::uint32_t> products(1 + number(most), 1);
    for (const std::uint32_t factor : factors) products[number(static_cast<std::uint32_t>(products.size()))] *= factor;
    return products;
  }

  TensorLayout layout(std::vector<std::uint32_t> devices, const models::Shape& shape) {
    TensorLayout layout = replicated({std::move(devices)}, shape);
    for (std::uint32_t axis = 0; axis < layout.devices.sizes.size(); ++axis) {
      const std::uint32_t dim = number(static_cast<std::uint32_t>(shape.rank()) + 1);
      if (dim == shape.rank()) continue;
      std::vector<std::uint32_t>& cutting = layout.map[dim];
      cutting.insert(cutting.begin() + number(static_cast<std::uint32_t>(cutting.size()) + 1), axis);
      if (shape.size(dim) % layout.cuts(dim) != 0) std::erase(cutting, axis);
    }
    return layout;
  }

  std::mt19937 random_;
};

std::string description(const TensorLayout& from, const TensorLayout& to) {
  return fmt::format("{} of {} -> {} of {}", to_string(from), fmt::join(from.shape.sizes(), "x"), to_string(to),
                     fmt::join(to.shape.sizes(), "x"));
}

class RedistributionOfRandomLayouts : public testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(RedistributionOfRandomLayouts, EveryDeviceEndsWithItsPart) {
  const auto [reshapes, all_to_all, own_axes] = GetParam();
  RandomLayouts layouts(1);
  std::size_t moved = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const auto [from, to] = layouts.draw(reshapes);
    const auto steps = redistribute(from, to, {all_to_all, own_axes});
    ASSERT_EQ(test::carry_out(steps, test::cut(from)), test::cut(to)) << description(from, to) << ": " << text(steps);
    moved += steps.empty() ? 0 : 1;
  }
  EXPECT_GT(moved, 400U);
}

// The backward pass is the transpose of the forward pass: ⟨R·x, y⟩ = ⟨x, Rᵀ·y⟩ for whatever devices have.
TEST_P(RedistributionOfRandomLayouts, BackwardIsTheTranspose) {
  const auto [reshapes, all_to_all, own_axes] = GetParam();
  RandomLayouts layouts(2);
  std::mt19937 random(3);
  const auto filled = [&](const TensorLayout& layout) {
    test::HeldTensors held = test::cut(layout);
    for (test::HeldTensor& tensor : held) {
      for (std::int64_t& value : tensor.values) value = static_cast<std::int64_t>(random() % 100);
    }
    return held;
  };
  const auto product = [](const test::HeldTensors& one, const test::HeldTensors& other) {
    std::int64_t product = 0;
    for (std::size_t device = 0; device < one.size(); ++device) {
      const std::vector<std::int64_t>& values = one[device].values;
      product = std::inner_product(values.begin(), values.end(), other[device].values.begin(), product);
    }
    return product;
  };
  for (int trial = 0; trial < 200; ++trial) {
    const auto [from, to] = layouts.draw(reshapes);
    const auto steps = redistribute(from, to, {all_to_all, own_axes});
    const test::HeldTensors x = filled(from);
    const test::HeldTensors y = filled(to);
    ASSERT_EQ(product(test::carry_out(steps, x), y), product(x, test::carry_out(backward_of(steps), y)))
        << description(from, to) << ": " << text(steps);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RedistributionOfRandomLayouts,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

TEST(Redistribution, DualsOfTheBackwardPass) {
  const DeviceMatrix devices{{2, 4}};
  const auto steps =
      redistribute({devices, {{1}, {0}}, {64, 64}}, {devices, {{0}, {1}}, {64, 64}}, {.all_to_all = true});
  EXPECT_EQ(text(backward_of(steps)), "pad 1 n=2; all_to_all 1>0 n=4; reduce_scatter 0 n=2");
  EXPECT_EQ(backward_of(backward_of(steps)), steps);
}

// q = 512 elements, 4 bytes each.
TEST(RedistributionCost, OfEachStep) {
  const DeviceMatrix devices{{2, 4}};
  const auto cost = [&](const Map& from, const Map& to, const RedistributionCostRules& rules) {
    return cost_of(redistribute({devices, from, {64, 64}}, {devices, to, {64, 64}}, {.all_to_all = true}), rules);
  };
  const auto figures = [](const RedistributionCost& cost) {
    return std::vector{cost.forward, cost.backward, cost.communication(), cost.computation};
  };
  const RedistributionCostRules documented{.element = 4, .counts_as_mindspore = false};
  const double q = 2048;  // elements before the step, cut in two
  EXPECT_THAT(figures(cost({{1}, {}}, {{}, {1}}, documented)), ElementsAre(8 * q, 8 * q, 16 * q, 4 * q));
  EXPECT_THAT(figures(cost({{}, {1}}, {{1}, {}}, documented)), ElementsAre(8 * q, 8 * q, 16 * q, 4 * (q + 2 * 2 * q)));
  EXPECT_THAT(figures(cost({{1}, {}}, {{}, {}}, documented)), ElementsAre(4 * q, 2 * q, 6 * q, 4 * q));
  EXPECT_THAT(figures(cost({{}, {1}}, {{}, {}}, documented)), ElementsAre(4 * q, 2 * q, 6 * q, 4 * (q + 2 * 2 * q)));
  EXPECT_THAT(figures(cost({{}, {}}, {{}, {1}}, documented)), ElementsAre(0, 0, 0, 4 * 2 * q));
  // MindSpore's addition; slices have it once anyway.
  EXPECT_DOUBLE_EQ(cost({{1}, {}}, {{}, {1}}, {.element = 4}).computation, 8 * q);
  EXPECT_DOUBLE_EQ(cost({{}, {}}, {{}, {1}}, {.element = 4}).computation, 8 * q);
}

TEST(RedistributionCost, ReshapeCountsOnceAndTruthValuesCannotBeCommunicated) {
  const DeviceMatrix devices{{4}};
  const auto steps = redistribute({devices, {{}, {0}}, {3, 8}}, {devices, {{0}}, {24}}, {});
  // all_gather of 6 over 4 along axis 1, reshape, slice of 24; the reshape counts what is there at the beginning.
  const RedistributionCost cost = cost_of(steps, {.element = 1, .counts_as_mindspore = false});
  EXPECT_DOUBLE_EQ(cost.forward, 12);
  EXPECT_DOUBLE_EQ(cost.backward, 3);
  EXPECT_DOUBLE_EQ(cost.computation, (6 + 2 * 4 * 6) + 24 + 2 * 6);
  EXPECT_TRUE(std::isinf(cost_of(steps, {.element = 1, .boolean = true}).communication()));
  const auto local = redistribute(replicated(devices, {8}), {devices, {{0}}, {8}}, {});
  EXPECT_DOUBLE_EQ(cost_of(local, {.element = 1, .boolean = true}).communication(), 0);
  EXPECT_DOUBLE_EQ(cost_of({}, {}).computation, 0);
}

}  // namespace
}  // namespace hcclsim::hccl
