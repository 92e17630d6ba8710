// The estimate of the vendor's tuning tool, by hand.

#include "study/run/split/aoe_cost.hpp"

#include <gtest/gtest.h>

namespace hcclsim::study {
namespace {

constexpr double ms = 1e-3;

TEST(AoeCost, OfOneServer) {
  const AffineCost cost = aoe_cost(8, 1);
  // 8 · 0.0005 + 3 · 0.0004 + 14 · (0.001 + 0.036) + 0.1
  EXPECT_NEAR(cost.alpha, (0.004 + 0.0012 + 0.518 + 0.1) * ms, 1e-12);
  EXPECT_NEAR(cost.beta, 1.75 / 56e9, 1e-20);
}

TEST(AoeCost, OfFourServers) {
  const AffineCost cost = aoe_cost(8, 4);
  EXPECT_NEAR(cost.alpha, (0.004 + 0.0012 + 0.518 + 0.1 + 6 * 0.015 + 1) * ms, 1e-12);
  EXPECT_NEAR(cost.beta, 1.75 / 56e9 + 1.5 / 8 / 10e9 + 0.75 / 8 / 200e9, 1e-20);
}

TEST(AoeCost, OfServersOfOneNpu) {
  const AffineCost cost = aoe_cost(1, 2);
  EXPECT_NEAR(cost.alpha, (0.0005 + 0.0012 + 2 * 0.015 + 1) * ms, 1e-12);
  EXPECT_NEAR(cost.beta, 1 / 10e9 + 0.5 / 200e9, 1e-20);
}

}  // namespace
}  // namespace hcclsim::study
