#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.hpp"

/// Names of groups of ranks.
namespace hcclsim::hccl {

/// The group of all ranks.
inline constexpr std::string_view world_group = "hccl_world_group";
/// A group's name has at most 128 bytes with its terminator.
inline constexpr std::size_t max_group_name = 127;

/// Throws Error(bad_input) of this kind for a name that is empty or too long.
inline void require_group_name(std::string_view name, std::string_view kind) {
  if (name.empty()) bad_input(kind, "the name of a group is empty; {} is the group of all ranks", world_group);
  if (name.size() <= max_group_name) return;
  bad_input(kind, "group name '{}…' has {} bytes; accepted: at most {} and the terminator", name.substr(0, 16),
            name.size(), max_group_name);
}

}  // namespace hcclsim::hccl
