#include "hccl/collective/algorithm/barrier.hpp"

#include <bit>
#include <cstdint>
#include <utility>

namespace hcclsim::hccl {

Schedule direct_barrier(const Operation& operation) {
  Builder builder(operation, "direct");
  const std::uint16_t group = builder.add_group(Group::block(operation.ranks));
  const auto rounds = static_cast<std::uint32_t>(std::bit_width(operation.ranks - 1));
  if (rounds == 0) return std::move(builder).finish();
  const std::int32_t first = builder.reserve_notifies(rounds);
  // Offsets double from round to round, so every round is a loop of its own.
  Strand strand{.group = group};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const Linear slot{first + static_cast<std::int32_t>(round)};
    strand.loops.push_back({.tasks = {post(peer_at(group, {std::int32_t{1} << round}), slot), wait(slot)}});
  }
  builder.add_stage("barrier").strands = {std::move(strand)};
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
