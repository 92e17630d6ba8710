#include "study/platform/routing_spread.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sim/cluster.hpp"

namespace hcclsim::study {
namespace {

const std::string leaf_spine = std::string(HCCLSIM_TEST_DATA) + "/platforms/leaf_spine.xml";

/// Of two points: one takes as long as the seed says, the other gets shorter with it; ideal they take none.
std::vector<RoutingSpread> spreads_from(std::uint64_t seed, std::uint32_t seeds) {
  return run_in_child([&] {
    sim::Cluster cluster(leaf_spine, {}, sim::Routing{.kind = sim::RoutingKind::ecmp, .seed = seed});
    RoutingTimes times(cluster, seeds, [&cluster] {
      const sim::Routing& routing = cluster.routing();
      if (routing.kind == sim::RoutingKind::ideal) return std::vector<Seconds>{0.5, 0.25};
      return std::vector<Seconds>{static_cast<double>(routing.seed), 100 - static_cast<double>(routing.seed)};
    });
    return times.finish();
  });
}

TEST(RoutingSpread, HoldsEverySeedInOrder) {
  const std::vector<RoutingSpread> spreads = spreads_from(3, 5);
  ASSERT_EQ(spreads.size(), 2U);
  EXPECT_EQ(spreads[0].times, (std::vector<Seconds>{3, 4, 5, 6, 7}));
  EXPECT_EQ(spreads[1].times, (std::vector<Seconds>{97, 96, 95, 94, 93}));
  EXPECT_EQ(spreads[0].mean(), 5);
  EXPECT_EQ(spreads[0].worst(), 7);
  EXPECT_EQ(spreads[0].worst_seed(), 7U);
  EXPECT_EQ(spreads[1].worst_seed(), 3U);
  EXPECT_EQ(spreads[0].ideal, 0.5);
  EXPECT_EQ(spreads[1].ideal, 0.25);
  EXPECT_EQ(spreads[0].no_ideal, "");
}

TEST(RoutingSpread, OfOneSeed) {
  const std::vector<RoutingSpread> spreads = spreads_from(8, 1);
  EXPECT_EQ(spreads[0].times, (std::vector<Seconds>{8}));
  EXPECT_EQ(spreads[0].mean(), spreads[0].worst());
}

}  // namespace
}  // namespace hcclsim::study
