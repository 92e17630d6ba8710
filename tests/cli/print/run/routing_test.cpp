#include "cli/print/run/routing.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hcclsim::cli {
namespace {

std::string in_ms(Seconds time) { return fmt::format("{:g} ms", time * 1e3); }

TEST(RoutingReport, MeanAndWorstBesideTheIdeal) {
  study::RoutingSpread spread{.first_seed = 4, .times = {0.002, 0.004, 0.003}, .ideal = 0.0015};
  EXPECT_EQ(routing_text(spread, in_ms), "mean 3 ms, worst 4 ms (seed 5) of 3 seeds from 4 on; ideal routing 1.5 ms");
  const Json json = routing_json(spread);
  EXPECT_EQ(json.at("first_seed"), 4);
  EXPECT_EQ(json.at("times_s").size(), 3U);
  EXPECT_EQ(json.at("worst_seed"), 5);
  EXPECT_EQ(json.at("ideal_s"), 0.0015);
  EXPECT_FALSE(json.contains("no_ideal"));
}

TEST(RoutingReport, SaysWhyThereIsNoIdeal) {
  const study::RoutingSpread spread{.times = {0.002}, .no_ideal = "the links a and b are not alike"};
  EXPECT_EQ(routing_text(spread, in_ms),
            "mean 2 ms, worst 2 ms (seed 1) of 1 seed from 1 on; the links a and b are not alike");
  EXPECT_TRUE(routing_json(spread).at("ideal_s").is_null());
  EXPECT_EQ(routing_json(spread).at("no_ideal"), "the links a and b are not alike");
}

}  // namespace
}  // namespace hcclsim::cli
