#include "hccl/collective/pairwise.hpp"

#include <utility>

namespace hcclsim::hccl {

Schedule pairwise_alltoall(const Operation& operation) {
  Builder builder(operation, "pairwise");
  const Level level{builder.add_group(Group::block(operation.ranks)), {}, true};
  const std::vector<Cut> own = builder.share(level, {0, 1, 0, 0});
  Stage& stage = builder.add_stage("pairwise alltoall");

  const std::uint32_t steps = operation.ranks - 1;
  if (steps > 0) {
    const std::int32_t first = builder.reserve_notifies(steps + 1);
    const Linear have_read{first};
    const Linear ready{first + 1, 0, 1, 0};
    const Peer reader = peer_at(level.group, {1, 0, 1, 0});
    const Peer source = peer_at(level.group, {-1, 0, -1, 0});
    const Range theirs = output(builder.share(level, {-1, 1, -1, 0}));
    Loop loop{.rounds = {static_cast<std::int32_t>(steps)}};
    loop.tasks = {post(reader, ready), wait(ready), transfer(TaskKind::read, source, input(own), theirs),
                  post(source, have_read), wait(have_read)};
    stage.strands.push_back({.group = level.group, .loops = {loop}});
  }
  const Loop itself{.tasks = {copy(input(own), output(own))}};
  stage.strands.push_back({.group = level.group, .first_queue = steps > 0 ? 1U : 0U, .loops = {itself}});
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
