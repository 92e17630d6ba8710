#include "hccl/collective/algorithm/ring.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// One round: post to the left that it may write, wait for the post of the right, write, post, wait.
std::vector<Task> round(Builder& builder, std::uint16_t group, TaskKind kind, const Range& source,
                        const Range& destination) {
  const std::int32_t ready = builder.reserve_notifies(2);
  const Peer right = peer_at(group, {1});
  return step(peer_at(group, {-1}), right, {ready}, {ready + 1}, transfer(kind, right, source, destination));
}

}  // namespace

std::vector<Cut> ring_share(const Builder& builder, const Level& level, Linear index, std::uint32_t ring,
                            std::uint32_t rings) {
  std::vector<Cut> cuts = builder.share(level, index);
  if (rings > 1) {
    cuts.push_back({.group = level.group, .parts = rings, .index = {static_cast<std::int32_t>(ring), 0, 0, 0}});
  }
  return cuts;
}

Loop ring_reduce_scatter(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings) {
  const auto rounds = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  const std::vector<Cut> sent = ring_share(builder, level, {-1, 1, -1, 0}, ring, rings);
  Loop loop{.rounds = {rounds}};
  if (level.inline_reduce) {
    loop.tasks = round(builder, level.group, TaskKind::write_reduce, output(sent), output(sent));
    return loop;
  }
  const std::vector<Cut> received = ring_share(builder, level, {-2, 1, -1, 0}, ring, rings);
  const Bytes stride = builder.reserve_scratch(rings, sent);
  const Linear slot{static_cast<std::int32_t>(ring)};
  loop.tasks = round(builder, level.group, TaskKind::write, output(sent), scratch(sent, slot, stride));
  loop.tasks.push_back(reduce(scratch(received, slot, stride), output(received), true));
  return loop;
}

Loop ring_all_gather(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings) {
  const auto rounds = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  const std::vector<Cut> sent = ring_share(builder, level, {0, 1, -1, 0}, ring, rings);
  return {.rounds = {rounds}, .tasks = round(builder, level.group, TaskKind::write, output(sent), output(sent))};
}

Schedule in_rings(const Operation& operation, const std::vector<std::vector<Rank>>& orders, bool inline_reduce,
                  const std::vector<RingLoop>& loops) {
  Builder builder(operation, orders.empty() ? "ring" : "multi-ring");
  const auto rings = std::max<std::uint32_t>(static_cast<std::uint32_t>(orders.size()), 1);
  std::vector<Strand> strands;
  for (std::uint32_t ring = 0; ring < rings; ++ring) {
    Group group = orders.empty() ? Group::block(operation.ranks) : Group::ordered(operation.ranks, orders[ring]);
    const Level level{builder.add_group(std::move(group)), {}, inline_reduce};
    Strand strand{.group = level.group, .first_queue = ring};
    for (const RingLoop loop : loops) strand.loops.push_back(loop(builder, level, ring, rings));
    strands.push_back(std::move(strand));
  }
  builder.add_stage(orders.empty() ? "ring" : "rings").strands = std::move(strands);
  return std::move(builder).finish();
}

Schedule ring_allreduce(const Operation& operation, bool inline_reduce) {
  return in_rings(operation, {}, inline_reduce, {ring_reduce_scatter, ring_all_gather});
}

const std::vector<std::vector<Rank>>& four_rings_of_910a() {
  static const std::vector<std::vector<Rank>> orders{
      {0, 1, 2, 6, 5, 4, 7, 3}, {0, 3, 7, 4, 5, 6, 2, 1}, {0, 2, 3, 1, 5, 7, 6, 4}, {0, 4, 6, 7, 5, 1, 3, 2}};
  return orders;
}

std::vector<std::vector<Rank>> double_ring(Rank ranks) {
  std::vector<Rank> up(ranks);
  std::iota(up.begin(), up.end(), Rank{0});
  return {up, {up.rbegin(), up.rend()}};
}

}  // namespace hcclsim::hccl
