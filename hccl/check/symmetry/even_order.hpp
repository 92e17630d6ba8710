#pragma once

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

namespace hcclsim::hccl {

/// The group has all ranks of its block, in their order or so that successive positions are equally far apart (modulo
/// the size): 0 1 2 3, also backwards, or 0 3 1 4 2. Then the rank one place further in the block has a position that
/// is a constant further, and what peers at offsets are to the one, those a place further are to the other.
[[nodiscard]] inline bool has_even_order(const Group& group) {
  const std::vector<Rank>& order = group.order();
  if (order.empty()) return true;
  const Rank span = group.span();
  if (order.size() != span) return false;
  const Rank distance = span > 1 ? (order[1] + span - order[0]) % span : 0;
  for (std::size_t position = 1; position < order.size(); ++position) {
    if (order[position] != (order[position - 1] + distance) % span) return false;
  }
  return true;
}

}  // namespace hcclsim::hccl
