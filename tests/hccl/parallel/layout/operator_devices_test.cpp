#include "hccl/parallel/layout/operator_devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using OperatorGroups = std::vector<std::vector<Rank>>;

// A product of matrices cut (2,2) and (2,1) on 8 devices.
TEST(OperatorDevices, NeighboursRepeat) {
  const OperatorDevices devices("matmul", {2, 2, 1}, 8);
  EXPECT_THAT(devices.matrix().sizes, ElementsAre(2, 2, 1, 2));
  EXPECT_EQ(devices.repetitions(), 2U);
  const TensorLayout input = devices.layout("input 0", {8, 16}, {{0}, {1}});
  const TensorLayout weight = devices.layout("input 1", {16, 32}, {{1}, {2}});
  EXPECT_EQ(input.replicas(), (OperatorGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(weight.replicas(), (OperatorGroups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(weight.copies(), 4U);
  EXPECT_EQ(devices.groups({1}), (OperatorGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

// A batch cut into two of four slices: devices 0 and 1 have them, 2 and 3 have them again.
TEST(OperatorDevices, RepetitionOnTheLeft) {
  const OperatorDevices devices("input", {2}, 4, RepetitionSide::left);
  EXPECT_THAT(devices.matrix().sizes, ElementsAre(2, 2));
  const TensorLayout batch = devices.layout("batch", {6}, {{0}});
  EXPECT_THAT(batch.offsets(1), ElementsAre(3));
  EXPECT_THAT(batch.offsets(2), ElementsAre(0));
  EXPECT_EQ(batch.replicas(), (OperatorGroups{{0, 2}, {1, 3}}));
  EXPECT_EQ(devices.groups({0}), (OperatorGroups{{0, 1}, {2, 3}}));
}

TEST(OperatorDevices, WithoutRepetitionThereIsNoAxisForIt) {
  const OperatorDevices devices("relu", {2, 4}, 8);
  EXPECT_THAT(devices.matrix().sizes, ElementsAre(2, 4));
  EXPECT_EQ(devices.repetitions(), 1U);
  EXPECT_EQ(devices.layout("x", {4, 4}, {{1}, {0}}).map, (TensorMap{{0}, {1}}));
}

TEST(OperatorDevices, WhatDoesNotDivideIsRefused) {
  const auto message = [](const std::vector<std::uint32_t>& sizes, Rank devices) {
    return test::refusal("runtime-error", [&] { (void)OperatorDevices("matmul", sizes, devices); });
  };
  EXPECT_THAT(message({2, 3}, 8), HasSubstr("matmul: its strategy needs (2x3) devices, which do not divide the 8"));
  EXPECT_THAT(message({16}, 8), HasSubstr("needs (16)"));
  EXPECT_THAT(message({65536, 65536}, 8), HasSubstr("needs (65536x65536)"));
  EXPECT_THAT(message({0, 2}, 8), HasSubstr("needs (0x2)"));
  EXPECT_THAT(
      test::refusal("runtime-error", [] { (void)OperatorDevices("relu", {4}, 4).layout("relu: input 0", {6}, {{0}}); }),
      HasSubstr("relu: input 0: axis 0 of the tensor 6 is not divisible by its 4 parts"));
}

}  // namespace
}  // namespace hcclsim::hccl
