#include "hccl/collective/ring_rooted.hpp"

#include <utility>

#include "hccl/collective/rooted.hpp"

namespace hcclsim::hccl {
namespace {

/// Notify slots of a level: somebody may begin, and has ended.
struct Slots {
  Linear ready;
  Linear done;
};

Slots reserve(Builder& builder) {
  const std::int32_t first = builder.reserve_notifies(2);
  return {{first}, {first + 1}};
}

std::vector<Task> join(std::vector<Task> first, const std::vector<Task>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Lets `peer` write, waits until it has.
std::vector<Task> receive(Peer peer, const Slots& slots) { return {post(peer, slots.ready), wait(slots.done)}; }

/// Writes to `peer` when it lets it.
std::vector<Task> send(Peer peer, const Slots& slots, const Range& block) {
  return {wait(slots.ready), transfer(TaskKind::write, peer, block, block), post(peer, slots.done)};
}

}  // namespace

void ring_broadcast(Builder& builder, const Level& level) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return;
  const Slots slots = reserve(builder);
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
  const Slots slots = reserve(builder);
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

void ring_scatter(Builder& builder, const Level& level) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return;
  const Slots slots = reserve(builder);
  const Range block = output(builder.share(level, {last, 0, -1, 0}));
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
  builder.add_stage("scatter along the ring").strands = {{.group = root_group, .loops = {root}},
                                                         {.group = others, .loops = {first, hand_on}}};
}

void ring_gather(Builder& builder, const Level& level) {
  const auto last = static_cast<std::int32_t>(builder.size(level.group)) - 1;
  if (last == 0) return;
  const Slots slots = reserve(builder);
  Loop root{.rounds = {last}};
  root.tasks = receive(peer_at(level.group, {1}), slots);
  // Position y of the others is position y + 1.
  const std::vector<Task> from_right = receive(peer_at(level.group, {2}), slots);
  const Peer left = peer_at(level.group, {0});
  Loop hand_on{.rounds = {last - 1, -1}};
  hand_on.tasks = join({from_right.front()},
                       join(send(left, slots, output(builder.share(level, {0, 1, 1, 0}))), {from_right.back()}));
  const Loop final_one{.tasks = send(left, slots, output(builder.share(level, {last})))};
  const std::uint16_t root_group = root_of(builder, level.group);
  const std::uint16_t others = others_of(builder, level.group);
  builder.add_stage("gather along the ring").strands = {{.group = root_group, .loops = {root}},
                                                        {.group = others, .loops = {hand_on, final_one}}};
}

namespace {

using Stages = void (*)(Builder&, const Level&);

Schedule build(const Operation& operation, bool inline_reduce, Stages stages) {
  Builder builder(operation, "ring");
  stages(builder, {builder.add_group(rooted_at(operation.root, operation.ranks)), {}, inline_reduce});
  return std::move(builder).finish();
}

}  // namespace

Schedule ring_broadcast(const Operation& operation) { return build(operation, true, ring_broadcast); }
Schedule ring_reduce(const Operation& operation, bool inline_reduce) {
  return build(operation, inline_reduce, ring_reduce);
}
Schedule ring_scatter(const Operation& operation) { return build(operation, true, ring_scatter); }
Schedule ring_gather(const Operation& operation) { return build(operation, true, ring_gather); }

}  // namespace hcclsim::hccl
