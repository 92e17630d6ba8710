#include "hccl/parallel/layout/tensor_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using DevicesOfGroups = std::vector<std::vector<Rank>>;

TEST(DeviceMatrix, LastAxisVariesFastest) {
  const DeviceMatrix matrix{{2, 4}};
  EXPECT_EQ(matrix.devices(), 8U);
  EXPECT_THAT(matrix.coordinates(6), ElementsAre(1, 2));
  EXPECT_EQ(matrix.device({1, 2}), 6U);
  EXPECT_EQ(matrix.size_from_right(0), 4U);
  EXPECT_EQ(matrix.size_from_right(1), 2U);
  EXPECT_EQ(matrix.groups({1}), (DevicesOfGroups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(matrix.groups({0}), (DevicesOfGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(matrix.groups({}).size(), 8U);
  EXPECT_EQ(matrix.groups({0, 1}), (DevicesOfGroups{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

TEST(DeviceMatrix, WithoutAxesIsOneDevice) {
  const DeviceMatrix matrix;
  EXPECT_EQ(matrix.devices(), 1U);
  EXPECT_TRUE(matrix.coordinates(0).empty());
  EXPECT_EQ(matrix.groups({}), (DevicesOfGroups{{0}}));
}

// A product of two matrices, cut (2,2) and (2,1), and computed twice by neighbours: the matrix is (2,2,1,2).
TEST(TensorLayout, ReplicasOfAProduct) {
  const DeviceMatrix matrix{{2, 2, 1, 2}};
  const TensorLayout input{matrix, {{3}, {2}}, {8, 16}};
  const TensorLayout weight{matrix, {{2}, {1}}, {16, 32}};
  EXPECT_EQ(input.replicas(), (DevicesOfGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(weight.replicas(), (DevicesOfGroups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(input.slice_shape(), (models::Shape{4, 8}));
  EXPECT_EQ(weight.slice_shape(), (models::Shape{8, 32}));
  EXPECT_EQ(matrix.groups({1}), (DevicesOfGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_THAT(input.offsets(5), ElementsAre(4, 0));
  EXPECT_THAT(input.offsets(2), ElementsAre(0, 8));
}

TEST(TensorLayout, AMapThatUsesTheLastAxisRepeatsAlongTheFirst) {
  const TensorLayout layout{{{2, 4}}, {{}, {0}}, {3, 8}};
  EXPECT_EQ(layout.replicas(), (DevicesOfGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_THAT(layout.offsets(6), ElementsAre(0, 4));
  EXPECT_EQ(layout.cuts(0), 1U);
  EXPECT_EQ(layout.cuts(1), 4U);
}

TEST(TensorLayout, TheFirstOfSeveralAxesVariesSlowest) {
  const TensorLayout down{{{2, 4}}, {{1, 0}}, {16}};
  const TensorLayout up{{{2, 4}}, {{0, 1}}, {16}};
  for (Rank device = 0; device < 8; ++device) {
    EXPECT_THAT(down.offsets(device), ElementsAre(2 * device));
    EXPECT_THAT(up.offsets(device), ElementsAre(2 * (device % 4 * 2 + device / 4)));
  }
  EXPECT_EQ(down.slice_shape(), (models::Shape{2}));
  EXPECT_EQ(down.replicas().size(), 8U);
}

TEST(TensorLayout, Replicated) {
  const TensorLayout layout = replicated({{2, 2}}, {3, 5});
  check_layout(layout, "x");
  EXPECT_EQ(layout.slice_shape(), (models::Shape{3, 5}));
  EXPECT_EQ(layout.replicas(), (DevicesOfGroups{{0, 1, 2, 3}}));
}

TEST(TensorLayout, Texts) {
  EXPECT_EQ(to_string(TensorLayout{{{2, 4}}, {{1}, {}}, {64, 64}}), "(2,4): (1,-)");
  EXPECT_EQ(to_string(TensorLayout{{{2, 4}}, {{1, 0}, {}}, {64, 64}}), "(2,4): ((1,0),-)");
}

TEST(TensorLayout, MapsAsUsersWriteThem) {
  EXPECT_EQ(parse_tensor_map("1,-"), (TensorMap{{1}, {}}));
  EXPECT_EQ(parse_tensor_map("(1,0),-,2"), (TensorMap{{1, 0}, {}, {2}}));
  EXPECT_EQ(parse_tensor_map("-"), (TensorMap{{}}));
  EXPECT_EQ(parse_tensor_map("-,(12)"), (TensorMap{{}, {12}}));
  for (const char* text : {"", ",", "1,", ",1", "x", "1x", "--", "(1", "(1,", "()", "(-)", "1)", "((1))", "(1)2",
                           "(1)(2)", "-1", "99999999999", "1 ,0"}) {
    EXPECT_THAT(test::refusal("option", [&] { (void)parse_tensor_map(text); }), HasSubstr("accepted: for each axis"))
        << text;
  }
}

TEST(TensorLayout, WhatIsNoneIsRefused) {
  const auto message = [](const TensorLayout& layout) {
    return test::refusal("runtime-error", [&] { check_layout(layout, "input 1"); });
  };
  EXPECT_THAT(message({{{2, 4}}, {{1}}, {4, 4}}), HasSubstr("input 1: the tensor 4x4 has 2 axes, its map 1"));
  EXPECT_THAT(message({{{2, 4}}, {{2}, {}}, {4, 4}}), HasSubstr("has axes 0 to 1"));
  EXPECT_THAT(message({{{2, 4}}, {{1}, {1}}, {4, 4}}), HasSubstr("axis 1 of the device matrix cuts twice"));
  EXPECT_THAT(message({{{2, 4}}, {{1}, {0}}, {4, 6}}), HasSubstr("axis 1 of the tensor 4x6 is not divisible by its 4"));
  EXPECT_THAT(message({{{0, 4}}, {{}}, {4}}), HasSubstr("an axis of size 0"));
}

}  // namespace
}  // namespace hcclsim::hccl
