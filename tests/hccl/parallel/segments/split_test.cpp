#include "hccl/parallel/segments/split.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/json.hpp"
#include "tests/support/json_file.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using Indices = std::vector<std::uint32_t>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Message of the Error(bad_input) of kind "split" that `work` throws.
template <typename Work>
std::string split_error(const Work& work) {
  return test::refusal("split", work);
}

Indices last_indices(const std::vector<Segment>& segments) {
  Indices indices;
  for (const Segment& segment : segments) indices.push_back(segment.last);
  return indices;
}

Indices default_split(const std::vector<Bytes>& sizes) {
  return last_indices(SplitStrategies(0, 8).resolve(world_group, sizes));
}

Indices split_by_size(const std::string& list, const std::vector<Bytes>& sizes) {
  SplitStrategies strategies(0, 8);
  strategies.set_split_strategy_by_size(parse_size_list(list));
  return last_indices(strategies.resolve(world_group, sizes));
}

Indices split_by_idx(const std::string& list, std::size_t gradients) {
  SplitStrategies strategies(0, 8);
  strategies.set_split_strategy_by_idx(parse_index_list(list));
  return last_indices(strategies.resolve(world_group, std::vector<Bytes>(gradients, 4)));
}

Json split_oracle() { return test::read_json("oracle/gradient_split.json"); }

/// Bytes of ResNet50's gradients in production order.
std::vector<Bytes> resnet50_sizes(std::uint64_t classes, Bytes element_size) {
  std::vector<Bytes> sizes;
  const auto all_elements = split_oracle()["elements_1000_classes"];
  for (const auto& elements : all_elements) {
    sizes.push_back(elements.get<Bytes>() * element_size);
  }
  sizes[0] = classes * element_size;
  sizes[1] = 2048 * classes * element_size;
  return sizes;
}

TEST(SplitOracle, PercentagesOfResNet50) {
  for (const std::uint64_t classes : {1000, 1001}) {
    SCOPED_TRACE(fmt::format("{} classes", classes));
    const auto sizes = resnet50_sizes(classes, 4);
    const auto expected = split_oracle()["last_indices"][std::to_string(classes)];
    ASSERT_EQ(expected.size(), 8);
    for (const auto& [list, indices] : expected.items()) {
      EXPECT_EQ(list == "default" ? default_split(sizes) : split_by_size(list, sizes), indices.get<Indices>()) << list;
    }
  }
}

TEST(SplitOracle, HalfPrecisionCutsAtTheSameGradients) {
  EXPECT_THAT(default_split(resnet50_sizes(1000, 2)), ElementsAre(107, 160));
}

TEST(SplitOracle, Form160WithoutBiasOfTheDenseLayer) {
  auto sizes = resnet50_sizes(1000, 4);
  sizes.erase(sizes.begin());
  const auto expected = split_oracle()["without_fc_bias_160_gradients"];
  EXPECT_EQ(default_split(sizes), expected["default"].get<Indices>());
  EXPECT_EQ(split_by_size("60,20,20", sizes), expected["60,20,20"].get<Indices>());
  EXPECT_EQ(split_by_idx("[20,100,159]", 160), expected["idx [20,100,159]"].get<Indices>());
}

TEST(SplitOracle, BytesOfTheReferenceSplits) {
  const auto sizes = resnet50_sizes(1001, 4);
  const std::vector<Bytes> first_segments{98'697'124, 59'674'532, 48'136'100, 91'473'828};
  const std::vector<Indices> splits{default_split(sizes), split_by_size("60,20,20", sizes),
                                    split_by_size("50,50", sizes), split_by_size("90,10", sizes)};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.begin() + splits[i][0] + 1, Bytes{0}), first_segments[i]) << i;
  }
}

TEST(SplitDefault, HasASecondSegmentOnlyIfAGradientIsLeft) {
  EXPECT_THAT(default_split({4}), ElementsAre(0));
  EXPECT_THAT(default_split({1, 1}), ElementsAre(1));
  EXPECT_THAT(default_split({29, 1}), ElementsAre(0, 1));
  EXPECT_THAT(default_split(std::vector<Bytes>(20, 4)), ElementsAre(18, 19));
  EXPECT_THAT(default_split({1, 1, 1'000'000}), ElementsAre(2));  // 96.54 % is nearest to the last gradient
  EXPECT_THAT(default_split({1'000'000, 1, 1}), ElementsAre(0, 2));
}

TEST(SplitBySize, EqualGradients) {
  EXPECT_THAT(split_by_size("50,50", std::vector<Bytes>(20, 4)), ElementsAre(9, 19));
  EXPECT_THAT(split_by_size("100", std::vector<Bytes>(20, 4)), ElementsAre(19));
  EXPECT_THAT(split_by_size("20,40,40", std::vector<Bytes>(30, 4)), ElementsAre(5, 17, 29));
}

TEST(SplitBySize, TieTakesTheLowerGradient) {
  // Target 2.5 of the sums 1 2 3 4 5: bisection probes 3, 1, 2, and 2 is as near as 3.
  EXPECT_THAT(split_by_size("50,50", {1, 1, 1, 1, 1}), ElementsAre(1, 4));
}

TEST(SplitBySize, MissesANearerGradientAfterTheLastProbe) {
  // Target 49 of the sums 40 50 100: bisection probes 50 (above), then 40 (below), and does not look at 50 again.
  EXPECT_THAT(split_by_size("49,51", {40, 10, 50}), ElementsAre(0, 2));
}

TEST(SplitBySize, EachCutExceedsTheOneBefore) {
  EXPECT_THAT(split_by_size("40,20,40", {100, 1, 1, 1}), ElementsAre(0, 1, 3));
  EXPECT_THAT(split_by_size("0,0,100", {5, 5, 5}), ElementsAre(0, 1, 2));
}

TEST(SplitBySize, StopsAtTheLastGradient) {
  EXPECT_THAT(split_by_size("100,0", {5, 5, 5}), ElementsAre(2));
  EXPECT_THAT(split_by_size("20,20,20,20,20", {5, 5}), ElementsAre(0, 1));
  EXPECT_THAT(split_by_size("50,50", {7}), ElementsAre(0));
}

TEST(SplitBySize, NoGradients) {
  EXPECT_THAT(split_error([] { split_by_size("50,50", {}); }), HasSubstr("no gradients to split"));
  EXPECT_THAT(split_error([] { default_split({}); }), HasSubstr("no gradients to split"));
}

// An independent form of the vendor's rule: float32 sums, and a recursive bisection that returns the last index probed.
struct Probe {
  std::uint32_t index = 0;
  bool hit = false;
};

Probe bisect(const std::vector<float>& sums, float target, std::int64_t low, std::int64_t high, std::uint32_t last) {
  if (low > high) return {last, false};
  const auto middle = low + (high - low) / 2;
  const float sum = sums[static_cast<std::size_t>(middle)];
  if (std::abs(sum - target) < 1e-6F) return {static_cast<std::uint32_t>(middle), true};
  return sum > target ? bisect(sums, target, low, middle - 1, static_cast<std::uint32_t>(middle))
                      : bisect(sums, target, middle + 1, high, static_cast<std::uint32_t>(middle));
}

Indices brute_force(const std::vector<double>& percentages, const std::vector<Bytes>& sizes) {
  std::vector<float> sums(sizes.begin(), sizes.end());
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  Indices cuts;
  for (std::size_t i = 0; i < percentages.size(); ++i) {
    float target = 0;
    for (std::size_t j = 0; j <= i; ++j) target = target + float(percentages[j] / 100) * sums.back();
    const Probe probe = bisect(sums, target, 0, std::int64_t(sums.size()) - 1, 0);
    std::uint32_t cut = probe.index;
    if (!probe.hit && cut > 0) {
      const float here = std::abs(sums[cut] - target);
      const float before = std::abs(sums[cut - 1] - target);
      if (before <= here) cut -= 1;
    }
    if (!cuts.empty() && cut <= cuts.back()) cut = cuts.back() + 1;
    if (i + 1 == percentages.size()) cut = std::uint32_t(sizes.size()) - 1;
    cuts.push_back(cut);
    if (cut + 1 == sizes.size()) break;
  }
  return cuts;
}

std::vector<Bytes> random_sizes(std::mt19937_64& random) {
  std::vector<Bytes> sizes(1 + random() % 200);
  const auto shape = random() % 4;
  for (Bytes& size : sizes) {
    // All equal; anything; mostly tiny and a few large, as convolutions and batch norms; multiples of a prime.
    size = shape == 0 ? 4096 : shape == 1 ? 1 + random() % 10'000'000 : shape == 2 ? 1 : 7 * (1 + random() % 50);
    if (shape == 2 && random() % 3 == 0) size = Bytes{1} << (random() % 27);
  }
  if (random() % 8 == 0) sizes[random() % sizes.size()] = 4'000'000'000;
  return sizes;
}

/// Up to eight whole percentages that sum to 100, zeros included.
std::vector<double> random_percentages(std::mt19937_64& random) {
  std::vector<double> percentages(1 + random() % 8);
  int left = 100;
  for (std::size_t i = 0; i + 1 < percentages.size(); ++i) {
    const int share = static_cast<int>(random() % static_cast<unsigned>(left + 1));
    percentages[i] = share;
    left -= share;
  }
  percentages.back() = left;
  return percentages;
}

TEST(SplitBySize, AgreesWithBruteForce) {
  std::mt19937_64 random(20240501);  // NOLINT: the same cases on every run
  std::size_t cut_counts[9] = {};
  for (int round = 0; round < 20'000; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    const auto sizes = random_sizes(random);
    const auto percentages = random_percentages(random);
    const auto cuts = last_indices_by_size(percentages, sizes);
    ASSERT_EQ(cuts, brute_force(percentages, sizes));
    ASSERT_EQ(cuts.back(), sizes.size() - 1);
    ASSERT_TRUE(std::is_sorted(cuts.begin(), cuts.end(), std::less_equal<>()));
    ++cut_counts[cuts.size()];
  }
  for (std::size_t count = 1; count <= 8; ++count) EXPECT_GT(cut_counts[count], 100) << count << " segments";
}

TEST(SplitByIdx, Accepted) {
  EXPECT_THAT(split_by_idx("106,160", 161), ElementsAre(106, 160));
  EXPECT_THAT(split_by_idx("0", 1), ElementsAre(0));
  EXPECT_THAT(split_by_idx("0,1,2", 3), ElementsAre(0, 1, 2));
}

TEST(SplitByIdx, LastIndexIsTheLastGradient) {
  EXPECT_EQ(
      split_error([] { split_by_idx("[20,100,159]", 161); }),
      "split by index 20,100,159: last index must be 160 (161 gradients), got 159, as of a network with 160 gradients; "
      "of this one it would be 20,100,160");
  EXPECT_THAT(split_error([] { split_by_idx("20,165,170", 161); }), HasSubstr("of this one it would be 20,160"));
  EXPECT_THAT(split_error([] { split_by_idx("4294967295", 161); }), HasSubstr("of this one it would be 160"));
}

TEST(SplitByIdx, Ascending) {
  EXPECT_THAT(split_error([] { split_by_idx("100,20,160", 161); }),
              HasSubstr("100 is followed by 20; did you mean 20,100,160?"));
  EXPECT_THAT(split_error([] { split_by_idx("20,20,160", 161); }), HasSubstr("did you mean 20,160?"));
}

TEST(SplitSettings, SizeBeforeIndexBeforeDefault) {
  const std::vector<Bytes> sizes(20, 4);
  SplitStrategies strategies(0, 8);
  strategies.set_split_strategy_by_idx({4, 19});
  EXPECT_THAT(last_indices(strategies.resolve(world_group, sizes)), ElementsAre(4, 19));
  strategies.set_split_strategy_by_size({50, 50});
  EXPECT_THAT(last_indices(strategies.resolve(world_group, sizes)), ElementsAre(9, 19));
  EXPECT_THAT(strategies.notes(), IsEmpty());
}

TEST(SplitSettings, FirstOfAKindStays) {
  const std::vector<Bytes> sizes(20, 4);
  SplitStrategies strategies(0, 8);
  strategies.set_split_strategy_by_size({50, 50});
  strategies.set_split_strategy_by_size({25, 75});
  strategies.set_split_strategy_by_idx({3, 19});
  strategies.set_split_strategy_by_idx({7, 19});
  EXPECT_THAT(last_indices(strategies.resolve(world_group, sizes)), ElementsAre(9, 19));
  EXPECT_THAT(strategies.notes(),
              ElementsAre("split by size 25,75 of group hccl_world_group is ignored: 50,50 was set first",
                          "split by index 7,19 of group hccl_world_group is ignored: 3,19 was set first"));
}

TEST(SplitSettings, PerGroup) {
  const std::vector<Bytes> sizes(20, 4);
  SplitStrategies strategies(2, 8);
  strategies.create_group("left", {3, 2, 1, 0});
  strategies.create_group("right", {4, 5, 6, 7});
  strategies.set_split_strategy_by_size({50, 50}, "left");
  EXPECT_THAT(last_indices(strategies.resolve("left", sizes)), ElementsAre(9, 19));
  EXPECT_THAT(last_indices(strategies.resolve(world_group, sizes)), ElementsAre(18, 19));
  EXPECT_EQ(split_error([&] { strategies.set_split_strategy_by_idx({19}, "right"); }),
            "rank 2 is not in group right; the caller must be one of its 4 ranks: 4,5,6,7");
  EXPECT_THAT(split_error([&] { strategies.set_split_strategy_by_idx({19}, "up"); }), HasSubstr("does not exist"));
  EXPECT_THAT(split_error([&] { return strategies.resolve("up", sizes); }), HasSubstr("does not exist"));
}

TEST(SplitSettings, Fallbacks) {
  const std::vector<Bytes> sizes(3, 4);
  SplitStrategies strategies(0, 8);
  strategies.set_fallback(FallbackSplit::none);
  EXPECT_THAT(strategies.resolve(world_group, sizes), ElementsAre(Segment{0, 2}));
  strategies.set_fallback(FallbackSplit::each);
  EXPECT_THAT(strategies.resolve(world_group, sizes), ElementsAre(Segment{0, 0}, Segment{1, 1}, Segment{2, 2}));
  strategies.set_split_strategy_by_idx({1, 2});
  EXPECT_THAT(strategies.resolve(world_group, sizes), ElementsAre(Segment{0, 1}, Segment{2, 2}));
}

TEST(SplitSettings, GroupNames) {
  SplitStrategies strategies(0, 8);
  strategies.create_group(std::string(127, 'g'), {0});
  strategies.set_split_strategy_by_idx({19}, std::string(127, 'g'));
  EXPECT_THAT(split_error([&] { strategies.create_group(std::string(128, 'g'), {0}); }), HasSubstr("has 128 bytes"));
  EXPECT_THAT(split_error([&] { strategies.set_split_strategy_by_size({100}, std::string(128, 'g')); }),
              HasSubstr("at most 127"));
  EXPECT_THAT(split_error([&] { strategies.set_split_strategy_by_size({100}, ""); }), HasSubstr("is empty"));
  EXPECT_THAT(split_error([&] { strategies.create_group("", {0}); }), HasSubstr("is empty"));
  EXPECT_THAT(split_error([&] { strategies.create_group("hccl_world_group", {0}); }), HasSubstr("exists already"));
  EXPECT_THAT(split_error([&] { strategies.create_group("a", {}); }), HasSubstr("no ranks"));
  EXPECT_THAT(split_error([&] { strategies.create_group("a", {0, 0}); }), HasSubstr("rank 0 twice"));
  EXPECT_THAT(split_error([&] { strategies.create_group("a", {0, 8}); }), HasSubstr("rank 8; accepted: 0 to 7"));
  EXPECT_THAT(split_error([] { SplitStrategies(8, 8); }), HasSubstr("rank 8 is not in hccl_world_group"));
}

TEST(SplitSettings, AtMostEightSegmentsUnlessAllowed) {
  const Indices nine{0, 1, 2, 3, 4, 5, 6, 7, 8};
  SplitStrategies strict(0, 8);
  strict.set_split_strategy_by_idx({0, 1, 2, 3, 4, 5, 6, 8});
  EXPECT_THAT(split_error([&] { strict.set_split_strategy_by_idx(nine); }), HasSubstr("--allow-many-segments"));
  EXPECT_THAT(split_error([&] {
                strict.set_split_strategy_by_size({20, 10, 10, 10, 10, 10, 10, 10, 10});
              }),
              HasSubstr("got 9"));
  SplitStrategies lenient(0, 8, true);
  lenient.set_split_strategy_by_idx(nine);
  EXPECT_EQ(last_indices(lenient.resolve(world_group, std::vector<Bytes>(9, 4))), nine);
}

TEST(SplitSettings, PercentagesSumTo100) {
  const auto error = [](std::vector<double> list) {
    return split_error([&] { SplitStrategies(0, 8).set_split_strategy_by_size(std::move(list)); });
  };
  EXPECT_EQ(error({60, 20, 10}), "split by size 60,20,10: percentages must sum to 100, got 90; did you mean 60,20,20?");
  EXPECT_THAT(error({96.54, 3.45}), HasSubstr("got 99.99; did you mean 96.54,3.46?"));
  EXPECT_THAT(error({60, 60, 10}), HasSubstr("got 130; did you mean 46.15,46.15,7.7?"));
  EXPECT_THAT(error({100, 0.00001}), HasSubstr("got 100.00001"));
  EXPECT_THAT(error({0, 0}), HasSubstr("got 0"));
  EXPECT_THAT(error({110, -10}), HasSubstr("-10 is not a percentage"));
  EXPECT_THAT(error({NAN, 100}), HasSubstr("nan is not a percentage"));
  EXPECT_THAT(error({}), HasSubstr("the list is empty"));
  SplitStrategies(0, 8).set_split_strategy_by_size({33.3333333, 33.3333333, 33.3333334});
  SplitStrategies(0, 8).set_split_strategy_by_size({60, 39.9999995});
}

TEST(SplitLists, Forms) {
  EXPECT_THAT(parse_index_list("106,160"), ElementsAre(106, 160));
  EXPECT_THAT(parse_index_list(" [20, 100,\t159] "), ElementsAre(20, 100, 159));
  EXPECT_THAT(parse_size_list("[60,20,20]"), ElementsAre(60, 20, 20));
  EXPECT_THAT(parse_size_list("96.54, 3.46"), ElementsAre(96.54, 3.46));
  EXPECT_THAT(parse_size_list("1e2"), ElementsAre(100));
}

TEST(SplitLists, WrongForms) {
  for (const char* text :
       {"",    " ",          "[]",       "[ ]",      "20,,160", ",20",    "20,",  "[20,160",    "20,160]",
        "[",   "]",          "20;160",   "20 160",   "a",       "-1,160", "0x10", "4294967296", "20.0,160",
        "1e2", "[[20,160]]", "(20,160)", "'20',160", "True",    "None",   "+20"}) {
    EXPECT_THAT(split_error([&] { return parse_index_list(text); }), HasSubstr("split by index")) << text;
  }
  for (const char* text : {"", "[]", "60,,40", "60,40,", "[60,40", "60,40]", "60%,40%", "nan", "inf", "-10,110", "a",
                           "60 40", "1e999", "0x32"}) {
    EXPECT_THAT(split_error([&] { return parse_size_list(text); }), HasSubstr("split by size")) << text;
  }
  EXPECT_THAT(split_error([] { return parse_index_list("96.54,3.46"); }), HasSubstr("percentages go to"));
}

TEST(SplitOutput, LogLine) {
  EXPECT_EQ(segment_log_line(std::vector<Segment>{{0, 107}, {108, 159}}),
            "gradient segment result: segment num: 2, segment index list: [0,107] [108,159]");
}

TEST(SplitOutput, ParameterNumbering) {
  // Reverse order: a segment [a..b] is [N-1-b .. N-1-a] in parameter order.
  EXPECT_THAT(parameter_ranges({0, 2}, Indices{5, 4, 3, 2, 1, 0}), ElementsAre(ParameterRange{3, 5}));
  // A branch finished in an order of its own leaves a hole.
  const auto ranges = parameter_ranges({0, 3}, Indices{5, 2, 4, 0, 3, 1});
  EXPECT_THAT(ranges, ElementsAre(ParameterRange{0, 0}, ParameterRange{2, 2}, ParameterRange{4, 5}));
  EXPECT_EQ(to_string(ranges), "0,2,4-5");
}

}  // namespace
}  // namespace hcclsim::hccl
