#include "hccl/collective/algorithm/pairwise.hpp"

namespace hcclsim::hccl {

std::vector<Strand> pairwise_blocks(Builder& builder, const Level& level, const Alltoall& blocks) {
  std::vector<Strand> strands;
  const std::uint32_t steps = builder.size(level.group) - 1;
  if (steps > 0) {
    const std::int32_t first = builder.reserve_notifies(steps + 1);
    const Linear have_read{first};
    const Linear ready{first + 1, 0, 1, 0};
    const Peer reader = peer_at(level.group, {1, 0, 1, 0});
    const Peer source = peer_at(level.group, {-1, 0, -1, 0});
    Loop loop{.rounds = {static_cast<std::int32_t>(steps)}};
    loop.tasks = {post(reader, ready), wait(ready),
                  transfer(TaskKind::read, source, blocks.source, blocks.destination({-1, 1, -1, 0})),
                  post(source, have_read), wait(have_read)};
    strands.push_back({.group = level.group, .loops = {loop}});
  }
  strands.push_back(
      {.group = level.group, .first_queue = steps > 0 ? 1U : 0U, .loops = {{.tasks = {blocks.own_copy()}}}});
  return strands;
}

Schedule pairwise_alltoall(const Operation& operation) { return alltoall(operation, "pairwise", pairwise_blocks); }

}  // namespace hcclsim::hccl
