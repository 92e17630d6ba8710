#pragma once

#include <functional>
#include <string>

#include "base/json.hpp"
#include "study/platform/routing_spread.hpp"

/// What the hash of routing ecmp does to a time, as reports have it. docs/formats.md describes the JSON.
namespace hcclsim::cli {

[[nodiscard]] Json routing_json(const study::RoutingSpread& spread);

/// "mean 12.345 ms, worst 14.100 ms (seed 7) of 20 seeds; ideal routing 11.200 ms", with times as `text_of` writes
/// them.
[[nodiscard]] std::string routing_text(const study::RoutingSpread& spread,
                                       const std::function<std::string(Seconds)>& text_of);

}  // namespace hcclsim::cli
