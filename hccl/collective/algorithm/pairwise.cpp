#include "hccl/collective/algorithm/pairwise.hpp"

namespace hcclsim::hccl {

std::vector<Strand> pairwise_blocks(Builder& builder, const Level& level, const Alltoall& blocks) {
  std::vector<Strand> strands;
  const std::uint32_t steps = builder.size(level.group) - 1;
  if (steps > 0) {
    const std::int32_t first = builder.reserve_notifies(steps + 1);
    const Peer reader = peer_at(level.group, {1, 0, 1, 0});
    const Peer source = peer_at(level.group, {-1, 0, -1, 0});
    const Task read = transfer(TaskKind::read, source, blocks.source, blocks.destination({-1, 1, -1, 0}));
    // A slot for "I have read", and one for "you may read" in every step.
    const Loop loop{.rounds = {static_cast<std::int32_t>(steps)},
                    .tasks = step(reader, source, {first + 1, 0, 1, 0}, {first}, read)};
    strands.push_back({.group = level.group, .loops = {loop}});
  }
  strands.push_back(
      {.group = level.group, .first_queue = steps > 0 ? 1U : 0U, .loops = {{.tasks = {blocks.own_copy()}}}});
  return strands;
}

}  // namespace hcclsim::hccl
