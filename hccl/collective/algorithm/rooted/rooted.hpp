#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// What algorithms with a root share. Positions are counted from the root: position 0 is the root, then come the ranks
/// above it, then those below.
namespace hcclsim::hccl {

/// All ranks of a block, beginning with the root.
[[nodiscard]] Group rooted_at(Rank root, Rank span, Rank stride = 1);

/// The root alone.
[[nodiscard]] std::uint16_t root_of(Builder& builder, std::uint16_t group);
/// All but the root; its position y is position y + 1 of `group`, which has more than one member.
[[nodiscard]] std::uint16_t others_of(Builder& builder, std::uint16_t group);

}  // namespace hcclsim::hccl
