#include "hccl/training/numerics/replicas/row_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;

// Two ranks, blocks of three rows of two numbers. Rank 0 keeps a row and sends two, rank 1 sends one.
TEST(RowExchange, RowsThatAreNoZerosAreMoved) {
  const std::vector<float> first{0, 0, 1, 2, 0, 0, /* to rank 1 */ 3, 0, 0, 0, -0.0F, 4};
  const std::vector<float> second{0, 0, 0, 0, 5, 6, /* to itself */ 0, 0, -0.0F, 0, 0, 0};
  const std::vector<std::span<const float>> sent{first, second};
  const RowExchange rows(sent, 2);
  EXPECT_EQ(rows.ranks(), 2U);
  EXPECT_THAT(rows.counts().counts(), ElementsAre(2, 4, 2, 0));
  EXPECT_EQ(rows.sent(0), 6U);
  EXPECT_EQ(rows.sent(1), 2U);
  EXPECT_EQ(rows.received(0), 4U);
  EXPECT_EQ(rows.received(1), 4U);

  std::vector<float> packed(6);
  rows.pack(0, first, packed);
  EXPECT_THAT(packed, ElementsAre(1, 2, 3, 0, 0, 4));
  std::vector<float> received(12, -1);
  rows.unpack(0, std::vector<float>{1, 2, 5, 6}, received);
  EXPECT_THAT(received, ElementsAre(0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 5, 6));
  received.assign(12, -1);
  rows.unpack(1, std::vector<float>{3, 0, 0, 4}, received);
  EXPECT_THAT(received, ElementsAre(3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0));
}

TEST(RowExchange, WithoutRows) {
  const std::vector<float> none(8, 0);
  const std::vector<std::span<const float>> sent{none, none};
  const RowExchange rows(sent, 4);
  EXPECT_EQ(rows.counts().largest(), 0U);
  std::vector<float> received(8, 1);
  rows.unpack(1, {}, received);
  EXPECT_THAT(received, testing::Each(0));
}

}  // namespace
}  // namespace hcclsim::hccl
