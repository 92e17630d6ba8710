#include "hccl/collective/algorithm/builder.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::hccl {

Builder::Builder(const Operation& operation, std::string algorithm) {
  require_possible(operation);
  if (operation.alignment == 0 || operation.alignment % size_of(operation.type) != 0) {
    internal_error("alignment {} is not a multiple of the element size {}", operation.alignment,
                   size_of(operation.type));
  }
  static_cast<Operation&>(schedule_) = operation;
  schedule_.algorithm = std::move(algorithm);
}

std::uint16_t Builder::add_group(Group group) {
  schedule_.groups.push_back(std::move(group));
  return static_cast<std::uint16_t>(schedule_.groups.size() - 1);
}

std::uint16_t Builder::add_part(std::uint16_t whole, std::vector<Rank> places) {
  const Group& group = schedule_.groups[whole];
  return add_group(Group::ordered(group.span(), std::move(places), group.stride()));
}

std::int32_t Builder::reserve_notifies(std::uint32_t count) {
  const std::int32_t first = next_notify_;
  next_notify_ += static_cast<std::int32_t>(count);
  schedule_.notifies = std::max(schedule_.notifies, static_cast<std::uint32_t>(next_notify_));
  return first;
}

std::vector<Cut> Builder::share(const Level& level, Linear index, std::uint32_t count, std::uint32_t step) const {
  const Group& group = schedule_.groups[level.group];
  const bool blocks = has_blocks() && !level.slices_of_blocks;
  const Cut share{.kind = blocks ? Cut::Kind::block : Cut::Kind::slice,
                  .ordered = !group.order().empty() && group.size() == group.span(),
                  .group = level.group,
                  .parts = group.size(),
                  .count = count,
                  .step = step,
                  .index = index,
                  .neighbours = blocks ? 1 : level.neighbours};
  std::vector<Cut> cuts = level.parent;
  const auto is_slice = [](const Cut& cut) { return cut.kind != Cut::Kind::block; };
  cuts.insert(blocks ? std::find_if(cuts.begin(), cuts.end(), is_slice) : cuts.end(), share);
  return cuts;
}

Bytes Builder::reserve_scratch(std::uint32_t slots, const std::vector<Cut>& cuts) {
  Bytes blocks = schedule_.blocks();
  std::size_t first = 0;
  for (; first < cuts.size() && cuts[first].kind == Cut::Kind::block; ++first) {
    blocks = blocks / cuts[first].parts * cuts[first].count;
  }
  const Bytes block = schedule_.largest_block() * size_of(schedule_.type);
  const Bytes length = blocks * most_left(std::span(cuts).subspan(first), block);
  const Bytes stride =
      std::max((length + schedule_.alignment - 1) / schedule_.alignment, Bytes{1}) * schedule_.alignment;
  schedule_.scratch = std::max(schedule_.scratch, stride * slots);
  return stride;
}

/// The largest length that cuts into slices leave of `length` bytes. Every slice is rounded up separately, so a part
/// that is cut out of each of many slices may be larger than the same part of the whole.
Bytes Builder::most_left(std::span<const Cut> cuts, Bytes length) const {
  if (cuts.empty()) return length;
  const Cut& cut = cuts.front();
  const Bytes finer = Bytes{cut.parts} * cut.neighbours;
  const Bytes even = (length + finer - 1) / finer;
  const Bytes rounded = (even + schedule_.alignment - 1) / schedule_.alignment * schedule_.alignment;
  const Bytes slice = std::min(rounded * cut.neighbours, length);
  const std::span<const Cut> further = cuts.subspan(1);
  // Half of all slices is the largest window that halving leaves; it is cut as a whole.
  if (cut.kind == Cut::Kind::halving) return most_left(further, std::min(length, cut.parts / 2 * slice));
  return std::min(length, cut.count * most_left(further, slice));
}

Stage& Builder::add_stage(std::string name) {
  schedule_.stages.push_back({std::move(name), {}});
  return schedule_.stages.back();
}

Schedule Builder::finish() && {
  for (const Stage& stage : schedule_.stages) {
    for (const Strand& strand : stage.strands) {
      schedule_.queues = std::max(schedule_.queues, strand.first_queue + strand.queues);
    }
  }
  return std::move(schedule_);
}

Range input(std::vector<Cut> cuts) { return {Buffer::input, std::move(cuts), {}, 0}; }

Range output(std::vector<Cut> cuts) { return {Buffer::output, std::move(cuts), {}, 0}; }

Range scratch(std::vector<Cut> cuts, Linear slot, Bytes stride) {
  return {Buffer::scratch, std::move(cuts), slot, stride};
}

std::vector<Cut> append(std::vector<Cut> cuts, Cut cut) {
  cuts.push_back(cut);
  return cuts;
}

Peer peer_at(std::uint16_t group, Linear offset) { return {Peer::Kind::offset, group, offset}; }

Task post(Peer peer, Linear slot) { return {TaskKind::post, peer, slot, {}, {}, false}; }

Task wait(Linear slot) { return {TaskKind::wait, {}, slot, {}, {}, false}; }

Task transfer(TaskKind kind, Peer peer, Range source, Range destination) {
  return {kind, peer, {}, std::move(source), std::move(destination), false};
}

Task copy(Range source, Range destination) {
  return {TaskKind::copy, {}, {}, std::move(source), std::move(destination), false};
}

Task reduce(Range source, Range destination, bool by_core) {
  return {TaskKind::reduce, {}, {}, std::move(source), std::move(destination), by_core};
}

std::vector<Task> step(Peer from, Peer to, Linear ready, Linear done, Task move) {
  return {post(from, ready), wait(ready), std::move(move), post(to, done), wait(done)};
}

}  // namespace hcclsim::hccl
