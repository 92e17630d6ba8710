#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"

/// How operations reach the device: as a graph whose tasks are loaded in advance, or one by one. The mode determines
/// which memory the data goes through (hccl/collective/staging.hpp), which algorithms HCCL chooses
/// (hccl/collective/selection/selection.hpp) and what a launch costs the host.
namespace hcclsim::hccl {

enum class LaunchMode : std::uint8_t { graph, op };

[[nodiscard]] constexpr std::string_view name_of(LaunchMode mode) { return mode == LaunchMode::graph ? "graph" : "op"; }
/// Inverse of name_of; throws Error(bad_input, "option").
[[nodiscard]] inline LaunchMode parse_launch_mode(std::string_view name) {
  if (name == "graph") return LaunchMode::graph;
  if (name == "op") return LaunchMode::op;
  bad_input("option", "unknown launch mode '{}'; accepted: graph, op", name);
}

}  // namespace hcclsim::hccl
