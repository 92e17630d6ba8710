#include "hccl/schedule/walk.hpp"

#include <algorithm>

namespace hcclsim::hccl {
namespace {

struct Slices {
  std::uint64_t first = 0;
  std::uint64_t count = 1;
};

/// The window of 2^k slices that `position` keeps after `halvings`: bit j of the position chose the half in halving j.
Slices halving_window(std::uint32_t parts, std::uint32_t position, std::uint32_t halvings) {
  Slices window{0, parts};
  for (std::uint32_t bit = 0; bit < halvings; ++bit) {
    window.count /= 2;
    if (((position >> bit) & 1U) != 0) window.first += window.count;
  }
  return window;
}

Slices slices_of(const Cut& cut, const Group& group, const Place& place) {
  const std::int64_t index = cut.index.at(place);
  if (cut.kind == Cut::Kind::halving) {
    const auto halvings = static_cast<std::uint32_t>(index);
    const std::uint32_t flipped = cut.peer ? std::uint32_t{1} << (halvings - 1) : 0;
    return halving_window(cut.parts, place.position ^ flipped, halvings);
  }
  const auto parts = static_cast<std::int64_t>(cut.parts);
  std::int64_t slice = index % parts;
  if (slice < 0) slice += parts;
  if (cut.ordered) slice = group.place_of(static_cast<Rank>(slice));
  return {static_cast<std::uint64_t>(slice), cut.count};
}

}  // namespace

ByteRange resolve(const Schedule& schedule, const Range& range, Rank rank, const Place& place,
                  std::uint16_t strand_group) {
  Bytes begin = 0;
  Bytes end = schedule.payload();
  for (const Cut& cut : range.cuts) {
    const Group& group = schedule.groups[cut.group];
    Place seen = place;
    if (cut.group != strand_group) seen.position = group.position(rank);
    const Slices slices = slices_of(cut, group, seen);
    // Slices begin at multiples of the alignment, so the last ones may be short or empty.
    const Bytes length = end - begin;
    const Bytes even = (length + cut.parts - 1) / cut.parts;
    const Bytes slice = (even + schedule.alignment - 1) / schedule.alignment * schedule.alignment;
    const Bytes from = std::min(slices.first * slice, length);
    const Bytes to = std::min((slices.first + slices.count) * slice, length);
    end = begin + to;
    begin += from;
  }
  if (range.slot_stride != 0) {
    return {range.buffer, static_cast<Bytes>(range.slot.at(place)) * range.slot_stride, end - begin};
  }
  return {range.buffer, begin, end - begin};
}

bool QueueWalk::enter(const Schedule& schedule, std::uint32_t stage, Rank rank, std::uint32_t queue) {
  strand_ = nullptr;
  task_ = nullptr;
  for (const Strand& strand : schedule.stages[stage].strands) {
    if (queue < strand.first_queue || queue >= strand.first_queue + strand.queues) continue;
    const Rank position = schedule.groups[strand.group].position(rank);
    if (position == Group::not_a_member) continue;
    strand_ = &strand;
    place_ = {position, 0, queue};
    loop_ = 0;
    start_loop();
    return true;
  }
  return false;
}

/// Stands at the first task of loop_, or of the next loop that has a round; at the end if there is none.
void QueueWalk::start_loop() {
  for (; loop_ < strand_->loops.size(); ++loop_) {
    const Loop& loop = strand_->loops[loop_];
    place_.round = 0;
    std::int64_t rounds = loop.rounds.at(place_);
    if (loop.most_rounds >= 0) rounds = std::min<std::int64_t>(rounds, loop.most_rounds);
    if (rounds <= 0 || loop.tasks.empty()) continue;
    rounds_ = static_cast<std::uint32_t>(rounds);
    task_ = loop.tasks.data();
    loop_end_ = task_ + loop.tasks.size();
    return;
  }
  task_ = nullptr;
}

void QueueWalk::next() {
  if (++task_ != loop_end_) return;
  if (++place_.round < rounds_) {
    task_ = strand_->loops[loop_].tasks.data();
    return;
  }
  ++loop_;
  start_loop();
}

Rank QueueWalk::peer(const Schedule& schedule, Rank rank) const {
  const Group& group = schedule.groups[task_->peer.group];
  return group.member(rank, task_->peer.position(place_, group.size()));
}

}  // namespace hcclsim::hccl
