// MindSpore's split by index, which counts parameters in forward order.

#include "hccl/parallel/fusion_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hccl/parallel/split.hpp"
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
  const auto segments = [&](const FusionRule& rule) { return segments_of_fusion(rule, sizes, 1, notes); };
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

}  // namespace
}  // namespace hcclsim::hccl
