// MindSpore's split by index, which counts parameters in forward order.

#include "hccl/parallel/segments/fusion_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hccl/parallel/segments/fusion_ids.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Segment> segments(const std::vector<std::uint32_t>& list, std::uint32_t parameters) {
  std::vector<std::string> notes;
  std::vector<Segment> result = segments_of_fusion_index(list, parameters, notes);
  EXPECT_THAT(notes, IsEmpty());
  return result;
}

// Ten parameters, numbered 9 … 0 as gradients 0 … 9: parameters 4 … 9 are gradients 0 … 5.
TEST(FusionIndex, CountsInParameterOrder) {
  EXPECT_THAT(segments({3, 9}, 10), ElementsAre(Segment{0, 5}, Segment{6, 9}));
  EXPECT_THAT(segments({3}, 10), ElementsAre(Segment{0, 5}, Segment{6, 9}));  // the rest is a segment
  EXPECT_THAT(segments({9}, 10), ElementsAre(Segment{0, 9}));
  EXPECT_THAT(segments({0, 1, 8}, 10), ElementsAre(Segment{0, 0}, Segment{1, 7}, Segment{8, 8}, Segment{9, 9}));
  // ResNet50: 86 parameters up to index 85, 75 behind it, whose gradients are complete first.
  EXPECT_THAT(segments({85, 160}, 161), ElementsAre(Segment{0, 74}, Segment{75, 160}));
}

TEST(FusionIndex, LeavesOutWhatNoParameterHas) {
  std::vector<std::string> notes;
  const std::vector<std::uint32_t> list{3, 10, 20};
  EXPECT_THAT(segments_of_fusion_index(list, 10, notes), ElementsAre(Segment{0, 5}, Segment{6, 9}));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("fusion index 20 is left out"), HasSubstr("fusion index 10 is left out")));
}

TEST(FusionIndex, ListAndSegmentsAreInverse) {
  for (const std::vector<std::uint32_t>& list : {std::vector<std::uint32_t>{3, 9}, {9}, {0, 1, 8, 9}, {0, 1, 2, 9}}) {
    std::vector<std::uint32_t> last;
    for (const Segment& segment : segments(list, 10)) last.push_back(segment.last);
    EXPECT_EQ(fusion_index_of(last), list);
  }
}

TEST(FusionIndex, RefusesListsAsMindSporeDoes) {
  EXPECT_THAT(parse_fusion_index("[85, 160]"), ElementsAre(85, 160));
  const auto bad = [](const char* text) {
    return test::refusal("split", [&] { static_cast<void>(parse_fusion_index(text)); });
  };
  EXPECT_THAT(bad("160,85"), HasSubstr("indices that ascend, got 85 after 160"));
  EXPECT_THAT(bad("85,85"), HasSubstr("indices that ascend, got 85 after 85"));
  EXPECT_THAT(bad(""), HasSubstr("the list is empty"));
  EXPECT_THAT(bad("1.5"), HasSubstr("not an index"));
  EXPECT_THAT(bad("true"), HasSubstr("not an index"));
}

/// Gradient 0 is that of the last parameter.
TEST(FusionOfGradients, SizesEndAboveOrBelow) {
  std::vector<std::string> notes;
  const std::vector<Bytes> sizes{4, 5, 3, 8, 12, 1};
  const auto segments = [&](const FusionRule& rule) { return fuse_gradients(rule, sizes, 1, notes).segments; };
  // 4 + 5 + 3 is more than 10; so is 8 + 12.
  EXPECT_EQ(segments({.threshold = 10, .ends_above = true}), (std::vector<Segment>{{0, 2}, {3, 4}, {5, 5}}));
  // A quarter of the threshold counts.
  EXPECT_EQ(segments({.threshold = 40, .counts_as_mindspore = true, .ends_above = true}),
            (std::vector<Segment>{{0, 2}, {3, 4}, {5, 5}}));
  // From the first parameter on: 1 | 12 | 8 | 3 + 5 | 4.
  EXPECT_EQ(segments({.threshold = 10}), (std::vector<Segment>{{0, 0}, {1, 2}, {3, 3}, {4, 4}, {5, 5}}));
  EXPECT_EQ(segments({.mode = FusionMode::all}), (std::vector<Segment>{{0, 5}}));
  EXPECT_EQ(segments({.mode = FusionMode::none}).size(), 6);
  EXPECT_EQ(segments({.mode = FusionMode::index, .last = {1}}), (std::vector<Segment>{{0, 3}, {4, 5}}));
}

/// F2.37: a size cuts what the list makes. Parameter 1 ends the first segment: gradients 4 and 5; 4 + 5 + 3 is more
/// than 10, and 8 begins anew in the same segment.
TEST(FusionOfGradients, SizesCutSegmentsOfIndex) {
  std::vector<std::string> notes;
  const std::vector<Bytes> sizes{4, 5, 3, 8, 12, 1};
  const auto segments = [&](const FusionRule& rule) { return fuse_gradients(rule, sizes, 1, notes).segments; };
  EXPECT_EQ(segments({.mode = FusionMode::index, .threshold = 10, .last = {1}, .ends_above = true}),
            (std::vector<Segment>{{0, 2}, {3, 3}, {4, 4}, {5, 5}}));
  EXPECT_EQ(segments({.mode = FusionMode::index, .threshold = 100, .last = {1}, .ends_above = true}),
            (std::vector<Segment>{{0, 3}, {4, 5}}));
}

/// F2.34: gradients with one id travel together wherever they stand, those with 0 alone.
TEST(FusionOfGradients, IdsNeedNoRun) {
  std::vector<std::string> notes;
  const std::vector<Bytes> sizes(6, 1);
  const FusedGradients fused = fuse_gradients({.mode = FusionMode::id, .ids = {1, 2, 1, 0, 2, 0}}, sizes, 1, notes);
  // Parameters 5 | 3 | 4, 1 | 2, 0, as gradients in the reverse of their order.
  EXPECT_THAT(fused.order, ElementsAre(0, 2, 1, 4, 3, 5));
  EXPECT_EQ(fused.segments, (std::vector<Segment>{{0, 0}, {1, 1}, {2, 3}, {4, 5}}));
  // F2.36 cuts in parameter order: 1 + 1 > 1 closes behind the second.
  const FusedGradients cut = fuse_gradients(
      {.mode = FusionMode::id, .threshold = 1, .ids = {1, 1, 1, 2, 2, 2}, .ends_above = true}, sizes, 1, notes);
  EXPECT_EQ(cut.segments, (std::vector<Segment>{{0, 0}, {1, 2}, {3, 3}, {4, 5}}));
  EXPECT_THAT(notes, testing::IsEmpty());
}

TEST(FusionIds, PatternsAndPrecedence) {
  const std::vector<std::string> names{"conv1.weight", "layer1.0.conv1.weight", "layer1.0.bn.gamma", "fc.weight"};
  EXPECT_THAT(ids_of(names, parse_fusion_ids("layer1.*=2; *.gamma=3 ;fc.weigh?=0")), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(ids_of(names, parse_fusion_ids("*=4")), ElementsAre(4, 4, 4, 4));
  for (const char* wrong : {"", "a", "a=", "=1", "a=-1", "a=x", "a=1;"}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_fusion_ids(wrong)); }), HasSubstr("PATTERN=ID"))
        << wrong;
  }
  EXPECT_THAT(test::refusal("option", [&] { require_matches(names, parse_fusion_ids("conv1.*=2;head*=3")); }),
              HasSubstr("'head*'"));
}

/// F2.21 and F2.34.
TEST(FusionIds, CountWhereTheyDiffer) {
  const FusionRule index{.mode = FusionMode::index, .last = {1}};
  EXPECT_EQ(with_ids(index, {1, 2, 1}), (FusionRule{.mode = FusionMode::id, .ids = {1, 2, 1}}));
  EXPECT_EQ(with_ids(index, {2, 2, 2}), index);
  EXPECT_EQ(with_ids({.mode = FusionMode::all}, {0, 0, 0}).mode, FusionMode::none);
  EXPECT_EQ(with_ids({.mode = FusionMode::all, .counts_as_mindspore = true}, {0, 0, 0}).mode, FusionMode::all);
  const FusionRule size{.threshold = 9, .ends_above = true};
  EXPECT_EQ(with_ids(size, {1, 2}),
            (FusionRule{.mode = FusionMode::id, .threshold = 9, .ids = {1, 2}, .ends_above = true}));
}

}  // namespace
}  // namespace hcclsim::hccl
