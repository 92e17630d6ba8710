#include "hccl/collective/algorithm/rooted/ring_rooted.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/algorithm/rooted/rooted.hpp"

namespace hcclsim::hccl {
namespace {

/// Notify slots of a level: "you may begin" and "I have ended".
struct RootedSlots {
  Linear ready;
  Linear done;
};

RootedSlots reserve(Builder& builder) {
  const std::int32_t first = builder.reserve_notifies(2);
  return {{first}, {first + 1}};
}

std::vector<Task> join(std::vector<Task> first, const std::vector<Task>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Lets `peer` write, waits until it has.
std::vector<Task> receive(Peer peer, const RootedSlots& slots) { return {post(peer, slots.ready), wait(slots.done)}; }

/// Writes to `peer` when it lets it.
std::vector<Task> send(Peer peer, const RootedSlots& slots, const Range& block) {
  return {wait(slots.ready), transfer(TaskKind::write, peer, block, block), post(peer, slots.done)};
}

}  // namespace

void ring_broadcast(Builder& builder, const Level& level) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return;
  const RootedSlots slots = reserve(builder);
  const Peer left = peer_at(level.group, {-1});
  const Peer right = peer_at(level.group, {1});
  const Range payload = output(level.parent);
  Loop take{.rounds = {0, 1}, .most_rounds = 1};
  take.tasks = {wait(slots.ready), transfer(TaskKind::read, left, payload, payload), post(left, slots.done)};
  Loop hand_on{.rounds = {last, -1}, .most_rounds = 1};
  hand_on.tasks = {post(right, slots.ready), wait(slots.done)};
  builder.add_stage("broadcast along the ring").strands = {{.group = level.group, .loops = {take, hand_on}}};
}

void ring_reduce(Builder& builder, const Level& level) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return;
  const RootedSlots slots = reserve(builder);
  const Peer left = peer_at(level.group, {-1});
  const Peer right = peer_at(level.group, {1});
  const Range payload = output(level.parent);
  Loop take{.rounds = {last, -1}, .most_rounds = 1};
  if (level.inline_reduce) {
    take.tasks = {wait(slots.ready), transfer(TaskKind::read_reduce, right, payload, payload), post(right, slots.done)};
  } else {
    const Range landing = scratch(level.parent, {}, builder.reserve_scratch(1, level.parent));
    take.tasks = {wait(slots.ready), transfer(TaskKind::read, right, payload, landing), post(right, slots.done),
                  reduce(landing, payload, true)};
  }
  Loop hand_on{.rounds = {0, 1}, .most_rounds = 1};
  hand_on.tasks = {post(left, slots.ready), wait(slots.done)};
  builder.add_stage("reduce along the ring").strands = {{.group = level.group, .loops = {take, hand_on}}};
}

std::vector<Strand> ring_scatter(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return {};
  const RootedSlots slots = reserve(builder);
  const Range block = output(ring_share(builder, level, {last, 0, -1, 0}, ring, rings));
  Loop root{.rounds = {last}};
  root.tasks = send(peer_at(level.group, {1}), slots, block);
  // Position y of the others is position y + 1.
  const std::vector<Task> from_left = receive(peer_at(level.group, {0}), slots);
  const std::vector<Task> to_right = send(peer_at(level.group, {2}), slots, block);
  const Loop first{.tasks = from_left};
  // The left may write the next block while this one is written to the right.
  Loop hand_on{.rounds = {last - 1, -1}};
  hand_on.tasks = join({from_left.front()}, join(to_right, {from_left.back()}));
  const std::uint16_t root_group = root_of(builder, level.group);
  const std::uint16_t others = others_of(builder, level.group);
  return {{.group = root_group, .first_queue = ring, .loops = {root}},
          {.group = others, .first_queue = ring, .loops = {first, hand_on}}};
}

std::vector<Strand> ring_gather(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return {};
  const RootedSlots slots = reserve(builder);
  Loop root{.rounds = {last}};
  root.tasks = receive(peer_at(level.group, {1}), slots);
  // Position y of the others is position y + 1.
  const std::vector<Task> from_right = receive(peer_at(level.group, {2}), slots);
  const Peer left = peer_at(level.group, {0});
  const Range next = output(ring_share(builder, level, {0, 1, 1, 0}, ring, rings));
  Loop hand_on{.rounds = {last - 1, -1}};
  hand_on.tasks = join({from_right.front()}, join(send(left, slots, next), {from_right.back()}));
  const Loop final_one{.tasks = send(left, slots, output(ring_share(builder, level, {last}, ring, rings)))};
  const std::uint16_t root_group = root_of(builder, level.group);
  const std::uint16_t others = others_of(builder, level.group);
  return {{.group = root_group, .first_queue = ring, .loops = {root}},
          {.group = others, .first_queue = ring, .loops = {hand_on, final_one}}};
}

namespace {

using RingStrands = std::vector<Strand> (*)(Builder&, const Level&, std::uint32_t ring, std::uint32_t rings);

/// Adds a stage in which all rings work at the same time; none for a single rank.
void add_stage(Builder& builder, const std::string& name, const std::vector<Level>& rings, RingStrands strands_of) {
  if (builder.size(rings.front().group) == 1) return;
  std::vector<Strand> strands;
  for (std::uint32_t ring = 0; ring < rings.size(); ++ring) {
    for (Strand& strand : strands_of(builder, rings[ring], ring, static_cast<std::uint32_t>(rings.size()))) {
      strands.push_back(std::move(strand));
    }
  }
  builder.add_stage(name).strands = std::move(strands);
}

template <RingLoop loop>
std::vector<Strand> everybody(Builder& builder, const Level& level, std::uint32_t ring, std::uint32_t rings) {
  return {{.group = level.group, .first_queue = ring, .loops = {loop(builder, level, ring, rings)}}};
}

/// Every order from the root on.
std::vector<Level> rooted_rings(Builder& builder, const Operation& operation, const RingOrders& orders,
                                bool inline_reduce) {
  std::vector<Level> rings;
  for (std::vector<Rank> order : orders) {
    std::rotate(order.begin(), std::find(order.begin(), order.end(), operation.root), order.end());
    rings.push_back({builder.add_group(Group::ordered(operation.ranks, std::move(order))), {}, inline_reduce});
  }
  return rings;
}

}  // namespace

void ring_scatter(Builder& builder, const Level& level) {
  add_stage(builder, "scatter along the ring", {level}, ring_scatter);
}

void ring_gather(Builder& builder, const Level& level) {
  add_stage(builder, "gather along the ring", {level}, ring_gather);
}

Schedule multi_ring_rooted(const Operation& operation, const RingOrders& orders, bool inline_reduce) {
  using enum Collective;
  const Collective collective = operation.collective;
  Builder builder(operation, "multi-ring");
  const std::vector<Level> rings = rooted_rings(builder, operation, orders, inline_reduce);
  if (collective == broadcast || collective == scatter) {
    add_stage(builder, "scatter along the rings", rings, ring_scatter);
  }
  if (collective == broadcast) add_stage(builder, "all-gather along the rings", rings, everybody<ring_all_gather>);
  if (collective == Collective::reduce) {
    add_stage(builder, "reduce-scatter along the rings", rings, everybody<ring_reduce_scatter>);
  }
  if (collective == Collective::reduce || collective == gather) {
    add_stage(builder, "gather along the rings", rings, ring_gather);
  }
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
