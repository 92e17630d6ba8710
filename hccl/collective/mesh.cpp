#include "hccl/collective/mesh.hpp"

namespace hcclsim::hccl {
namespace {

/// A strand on p−1 queues in which queue q reads `source` of position x+1+q into `destination`.
Strand read_from_all(Builder& builder, std::uint16_t group, const Range& source, const Range& destination) {
  const auto size = static_cast<std::int32_t>(builder.size(group));
  const std::int32_t first = builder.reserve_notifies(2 * (builder.size(group) - 1));
  const Peer peer{Peer::Kind::offset, group, {1, 0, 0, 1}};
  // Slots of queue q: 2q "you may read", 2q+1 "I have read". The peer's queue for us is p−2−q.
  const Linear at_peer_ready{first + 2 * (size - 2), 0, 0, -2};
  const Linear at_peer_read{first + 2 * (size - 2) + 1, 0, 0, -2};
  const Linear own_ready{first, 0, 0, 2};
  const Linear own_read{first + 1, 0, 0, 2};
  Loop loop;
  loop.tasks = {post(peer, at_peer_ready), wait(own_ready), transfer(TaskKind::read, peer, source, destination),
                post(peer, at_peer_read), wait(own_read)};
  return {.group = group, .first_queue = 0, .queues = builder.size(group) - 1, .loops = {loop}};
}

}  // namespace

void mesh_reduce_scatter(Builder& builder, const Level& level) {
  const std::vector<Cut> own = builder.share(level, {0, 1, 0, 0});
  const Rank others = builder.size(level.group) - 1;
  const Bytes stride = builder.reserve_scratch(others, own);
  Strand reads = read_from_all(builder, level.group, output(own), scratch(own, {0, 0, 0, 1}, stride));
  builder.add_stage("mesh reduce-scatter: read").strands.push_back(std::move(reads));

  Loop loop{.rounds = {static_cast<std::int32_t>(others)}};
  loop.tasks = {reduce(scratch(own, {0, 0, 1, 0}, stride), output(own), !level.inline_reduce)};
  builder.add_stage("mesh reduce-scatter: reduce").strands.push_back({.group = level.group, .loops = {loop}});
}

void mesh_all_gather(Builder& builder, const Level& level) {
  // Queue q reads slice x+1+q, complete at its owner.
  const std::vector<Cut> theirs = builder.share(level, {1, 1, 0, 1});
  Strand reads = read_from_all(builder, level.group, output(theirs), output(theirs));
  builder.add_stage("mesh all-gather").strands.push_back(std::move(reads));
}

Schedule mesh_one_shot_allreduce(const Operation& operation, bool inline_reduce) {
  Builder builder(operation, "mesh-one-shot");
  const std::uint16_t group = builder.add_group(Group::block(operation.ranks));
  if (operation.ranks == 1) return std::move(builder).finish();
  const auto size = static_cast<std::int32_t>(operation.ranks);
  const Bytes stride = builder.reserve_scratch(operation.ranks - 1, {});
  Strand reads = read_from_all(builder, group, output({}), scratch({}, {0, 0, 0, 1}, stride));
  builder.add_stage("read all").strands.push_back(std::move(reads));

  // The payload of rank j lies in slot j−x−1 (modulo p). Sum in the order of the ranks: those below x into the slot of
  // rank 0, that into the own payload, then those above x.
  const bool by_core = !inline_reduce;
  const Range of_rank_0 = scratch({}, {size - 1, -1, 0, 0}, stride);
  Loop below{.rounds = {-1, 1, 0, 0}};
  below.tasks = {reduce(scratch({}, {size, -1, 1, 0}, stride), of_rank_0, by_core)};
  Loop own{.rounds = {0, 1, 0, 0}, .most_rounds = 1};
  own.tasks = {reduce(of_rank_0, output({}), by_core)};
  Loop above{.rounds = {size - 1, -1, 0, 0}};
  above.tasks = {reduce(scratch({}, {0, 0, 1, 0}, stride), output({}), by_core)};
  builder.add_stage("reduce in rank order").strands.push_back({.group = group, .loops = {below, own, above}});
  return std::move(builder).finish();
}

Schedule mesh_two_shot_allreduce(const Operation& operation, bool inline_reduce) {
  Builder builder(operation, "mesh-two-shot");
  const Level level{builder.add_group(Group::block(operation.ranks)), {}, inline_reduce};
  if (operation.ranks > 1) {
    mesh_reduce_scatter(builder, level);
    mesh_all_gather(builder, level);
  }
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
