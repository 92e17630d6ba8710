#pragma once

#include <cstdint>
#include <string_view>

/// How operations reach the device: as a graph whose tasks are loaded in advance, or one by one. The mode determines
/// which memory the data goes through (hccl/collective/staging.hpp), which algorithms HCCL chooses
/// (hccl/collective/selection/selection.hpp) and what a launch costs the host.
namespace hcclsim::hccl {

enum class LaunchMode : std::uint8_t { graph, op };

[[nodiscard]] std::string_view name_of(LaunchMode mode);
/// Inverse of name_of; throws Error(bad_input, "option").
[[nodiscard]] LaunchMode parse_launch_mode(std::string_view name);

}  // namespace hcclsim::hccl
