#include "hccl/schedule/walk.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// Number `pick` of those that a cut of kind block or slice takes, and the part that it stands for.
std::uint32_t number_of(const Cut& cut, std::int64_t index, std::uint32_t pick) {
  const auto parts = static_cast<std::int64_t>(cut.parts);
  const std::int64_t number = (index + std::int64_t{cut.step} * pick) % parts;
  return static_cast<std::uint32_t>(number < 0 ? number + parts : number);
}
std::uint32_t part_of(const Cut& cut, const Group& group, std::int64_t index, std::uint32_t pick) {
  const std::uint32_t number = number_of(cut, index, pick);
  return cut.ordered ? group.place_of(number) : number;
}

/// The window of 2^k slices that `position` keeps after `halvings`: bit j of the position chose the half in halving j.
std::pair<std::uint64_t, std::uint64_t> halving_window(std::uint32_t parts, std::uint32_t position,
                                                       std::uint32_t halvings) {
  std::uint64_t first = 0;
  std::uint64_t count = parts;
  for (std::uint32_t bit = 0; bit < halvings; ++bit) {
    count /= 2;
    if (((position >> bit) & 1U) != 0) first += count;
  }
  return {first, count};
}

/// A range with what its closed forms are evaluated for.
class Evaluation {
 public:
  Evaluation(const Schedule& schedule, const Range& range, const Viewer& viewer)
      : schedule_(schedule),
        range_(range),
        viewer_(viewer),
        picked_blocks_(schedule.blocks_in(range.buffer)),
        neighbours_(picked_blocks_) {
    for (; block_cuts_ < range.cuts.size() && range.cuts[block_cuts_].kind == Cut::Kind::block; ++block_cuts_) {
      const Cut& cut = range.cuts[block_cuts_];
      const std::uint32_t run = picked_blocks_ / cut.parts;
      if (run % neighbours_ != 0) neighbours_ = neighbours_ % run == 0 ? run : 1;
      picked_blocks_ = cut.count * run;
    }
  }

 protected:
  [[nodiscard]] const std::vector<Cut>& cuts() const { return range_.cuts; }
  [[nodiscard]] const Group& group_of(const Cut& cut) const { return schedule_.groups[cut.group]; }
  [[nodiscard]] std::size_t block_cuts() const { return block_cuts_; }
  [[nodiscard]] bool equal_blocks() const { return schedule_.counts.empty(); }

  [[nodiscard]] std::uint32_t picked_blocks() const { return picked_blocks_; }
  /// This number of picked blocks, from the first on, are neighbours in the buffer, and so on. They are one range,
  /// unless each of them is cut on its own or is at work in a window only.
  [[nodiscard]] std::uint32_t neighbours() const {
    return schedule_.window > 0 || block_cuts_ < range_.cuts.size() ? 1 : neighbours_;
  }
  /// Number `pick` of the picked blocks, found on the way back through the cuts.
  [[nodiscard]] std::uint32_t block(std::uint32_t pick) const {
    std::uint32_t picks = picked_blocks_;
    for (std::size_t i = block_cuts_; i-- > 0;) {
      const Cut& cut = range_.cuts[i];
      const std::uint32_t run = picks / cut.count;
      pick = part_of(cut, group_of(cut), index_of(cut), pick / run) * run + pick % run;
      picks = cut.parts * run;
    }
    return pick;
  }
  /// The bytes of a block, or of the window of it that is at work.
  [[nodiscard]] std::pair<Bytes, Bytes> block_bytes(std::uint32_t number) const {
    const Bytes element = size_of(schedule_.type);
    Operation::Block block = schedule_.block(range_.buffer, viewer_.owner, number);
    if (schedule_.window > 0) {
      const std::uint64_t done = std::min(viewer_.place.window * schedule_.window, block.elements);
      block.elements = std::min(schedule_.window, block.elements - done);
      const bool own_layout = range_.buffer == Buffer::ccl || range_.buffer == Buffer::scratch;
      block.offset = own_layout ? number * schedule_.window : block.offset + done;
    }
    return {block.offset * element, (block.offset + block.elements) * element};
  }

  [[nodiscard]] std::int64_t index_of(const Cut& cut) const { return cut.index.at(place_in(cut)); }
  /// Length of the slices of a number of bytes. They begin at multiples of the alignment, so the last ones may be short
  /// or empty.
  [[nodiscard]] Bytes slice_of(const Cut& cut, Bytes length) const {
    const Bytes slices = Bytes{cut.parts} * cut.neighbours;
    const Bytes even = (length + slices - 1) / slices;
    return (even + schedule_.alignment - 1) / schedule_.alignment * schedule_.alignment * cut.neighbours;
  }
  /// First slice and number of slices of a cut of kind halving.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> halved(const Cut& cut) const {
    const auto halvings = static_cast<std::uint32_t>(index_of(cut));
    const std::uint32_t flipped = cut.peer ? std::uint32_t{1} << (halvings - 1) : 0;
    return halving_window(cut.parts, place_in(cut).position ^ flipped, halvings);
  }

 private:
  [[nodiscard]] Place place_in(const Cut& cut) const {
    Place place = viewer_.place;
    if (cut.group != viewer_.strand_group) place.position = schedule_.groups[cut.group].position(viewer_.rank);
    return place;
  }

  const Schedule& schedule_;
  const Range& range_;
  const Viewer& viewer_;
  std::size_t block_cuts_ = 0;
  std::uint32_t picked_blocks_;
  std::uint32_t neighbours_;
};

/// Calls visit(begin, end) for the parts of a range, in their order.
template <typename Visit>
class Cutter : Evaluation {
 public:
  Cutter(const Schedule& schedule, const Range& range, const Viewer& viewer, Visit visit)
      : Evaluation(schedule, range, viewer), visit_(visit) {}

  void run() {
    for (std::uint32_t pick = 0; pick < picked_blocks(); pick += neighbours()) {
      const std::uint32_t first = block(pick);
      cut(block_cuts(), block_bytes(first).first, block_bytes(first + neighbours() - 1).second);
    }
  }

 private:
  void cut(std::size_t number, Bytes begin, Bytes end) {
    if (number == cuts().size()) {
      visit_(begin, end);
      return;
    }
    const Cut& cut = cuts()[number];
    const Bytes length = end - begin;
    const Bytes slice = slice_of(cut, length);
    const auto cut_slices = [&](std::uint64_t first, std::uint64_t count) {
      this->cut(number + 1, begin + std::min(first * slice, length), begin + std::min((first + count) * slice, length));
    };
    if (cut.kind == Cut::Kind::halving) {
      const auto [first, count] = halved(cut);
      cut_slices(first, count);
      return;
    }
    const std::int64_t index = index_of(cut);
    for (std::uint32_t pick = 0; pick < cut.count; ++pick) {
      cut_slices(part_of(cut, group_of(cut), index, pick), 1);
    }
  }

  Visit visit_;
};

/// The length of all parts. That of a part depends on the length of what is cut only, and that has three values at
/// most: a full slice, the short one behind the full ones, nothing. So equal parts are counted instead of visited.
class LengthCount : Evaluation {
 public:
  using Evaluation::Evaluation;

  [[nodiscard]] Bytes run() const {
    const std::uint32_t picks = picked_blocks();
    if (equal_blocks()) {
      const auto [begin, end] = block_bytes(0);
      return picks * length_of(block_cuts(), end - begin);
    }
    Bytes sum = 0;
    for (std::uint32_t pick = 0; pick < picks; ++pick) {
      const auto [begin, end] = block_bytes(block(pick));
      sum += length_of(block_cuts(), end - begin);
    }
    return sum;
  }

 private:
  /// What the cuts from `number` on leave of a number of bytes.
  [[nodiscard]] Bytes length_of(std::size_t number, Bytes length) const {
    if (number == cuts().size() || length == 0) return length;
    const Cut& cut = cuts()[number];
    const Bytes slice = slice_of(cut, length);
    if (cut.kind == Cut::Kind::halving) {
      const auto [first, count] = halved(cut);
      return length_of(number + 1, std::min((first + count) * slice, length) - std::min(first * slice, length));
    }
    const Bytes full = length / slice;
    const std::uint64_t full_picks = picks_below(cut, full);
    Bytes sum = full_picks > 0 ? full_picks * length_of(number + 1, slice) : 0;
    const std::uint64_t short_picks = length % slice == 0 ? 0 : picks_below(cut, full + 1) - full_picks;
    if (short_picks > 0) sum += short_picks * length_of(number + 1, length % slice);
    return sum;
  }

  /// How many of the picked parts have numbers below `limit`.
  [[nodiscard]] std::uint64_t picks_below(const Cut& cut, std::uint64_t limit) const {
    if (limit >= cut.parts) return cut.count;
    const std::int64_t index = index_of(cut);
    const std::uint64_t first = number_of(cut, index, 0);
    const std::uint64_t end = first + std::uint64_t{cut.step} * cut.count;
    if (!cut.ordered && cut.step > 0 && end <= 2 * std::uint64_t{cut.parts}) {
      // An ascending row of numbers, and another one of what lies beyond the last part.
      const auto below = [&](std::uint64_t bound) {
        return bound <= first ? 0 : std::min<std::uint64_t>((bound - first - 1) / cut.step + 1, cut.count);
      };
      return below(limit) + below(cut.parts + limit) - below(cut.parts);
    }
    std::uint64_t picks = 0;
    for (std::uint32_t pick = 0; pick < cut.count; ++pick) {
      if (part_of(cut, group_of(cut), index, pick) < limit) ++picks;
    }
    return picks;
  }
};

/// Negative means none.
std::int64_t rounds_of(const Loop& loop, const Place& place) {
  const std::int64_t rounds = loop.rounds.at(place);
  return loop.most_rounds >= 0 ? std::min<std::int64_t>(rounds, loop.most_rounds) : rounds;
}

/// Of one queue.
std::uint64_t tasks_of(const Strand& strand, const Place& place) {
  std::uint64_t tasks = 0;
  for (const Loop& loop : strand.loops) {
    const std::int64_t rounds = rounds_of(loop, place);
    if (rounds > 0) tasks += static_cast<std::uint64_t>(rounds) * loop.tasks.size();
  }
  return tasks;
}

}  // namespace

std::uint64_t task_count(const Schedule& schedule, Rank rank) {
  std::uint64_t in_strands = 0;
  std::uint64_t in_lists = 0;
  const std::uint32_t windows = schedule.windows();
  for (const Stage& stage : schedule.stages) {
    for (const Strand& strand : stage.strands) {
      const Rank position = schedule.groups[strand.group].position(rank);
      if (position == Group::not_a_member) continue;
      for (std::uint32_t queue = strand.first_queue; queue < strand.first_queue + strand.queues; ++queue) {
        in_strands += tasks_of(strand, {position, 0, queue});
      }
    }
    for (std::uint32_t window = 0; window < windows && !stage.lists.empty(); ++window) {
      for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
        const TaskList* const list = stage.lists.find(window, rank, queue);
        if (list != nullptr) in_lists += list->tasks.size();
      }
    }
  }
  return in_strands * windows + in_lists;
}

std::uint64_t task_count(const Schedule& schedule) {
  std::uint64_t tasks = 0;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) tasks += task_count(schedule, rank);
  return tasks;
}

void resolve(const Schedule& schedule, const Range& range, const Viewer& viewer, std::vector<ByteRange>& pieces) {
  pieces.clear();
  const auto add = [&](Bytes begin, Bytes end) {
    if (begin == end) return;
    if (!pieces.empty() && pieces.back().offset + pieces.back().length == begin) {
      pieces.back().length += end - begin;
    } else {
      pieces.push_back({range.buffer, begin, end - begin});
    }
  };
  if (!range.intervals.empty()) {
    for (const ByteInterval& interval : range.intervals) add(interval.begin, interval.end);
    return;
  }
  if (range.slot_stride != 0) {
    const Bytes length = length_of(schedule, range, viewer);
    const Bytes offset = static_cast<Bytes>(range.slot.at(viewer.place)) * range.slot_stride;
    if (length > 0) pieces.push_back({range.buffer, offset, length});
    return;
  }
  Cutter(schedule, range, viewer, add).run();
}

Bytes length_of(const Schedule& schedule, const Range& range, const Viewer& viewer) {
  if (!range.intervals.empty()) {
    const auto add = [](Bytes sum, const ByteInterval& interval) { return sum + (interval.end - interval.begin); };
    return std::accumulate(range.intervals.begin(), range.intervals.end(), Bytes{0}, add);
  }
  return LengthCount(schedule, range, viewer).run();
}

bool QueueWalk::enter(const Schedule& schedule, std::uint32_t stage, Rank rank, std::uint32_t queue) {
  strand_ = nullptr;
  task_ = nullptr;
  const std::uint32_t window = stage / static_cast<std::uint32_t>(schedule.stages.size());
  for (const Strand& strand : schedule.stage(stage).strands) {
    if (queue < strand.first_queue || queue >= strand.first_queue + strand.queues) continue;
    const Rank position = schedule.groups[strand.group].position(rank);
    if (position == Group::not_a_member) continue;
    strand_ = &strand;
    place_ = {position, 0, queue, window};
    loop_ = 0;
    start_loop();
    return true;
  }
  const TaskList* const list = schedule.stage(stage).lists.find(window, rank, queue);
  if (list == nullptr) return false;
  place_ = {0, 0, queue, window};
  rounds_ = 1;
  loop_end_ = list->tasks.data() + list->tasks.size();
  task_ = list->tasks.empty() ? nullptr : list->tasks.data();
  return true;
}

std::uint64_t QueueWalk::count() const {
  if (task_ == nullptr) return 0;
  if (strand_ == nullptr) return static_cast<std::uint64_t>(loop_end_ - task_);
  return tasks_of(*strand_, {place_.position, 0, place_.queue});
}

/// Stands at the first task of loop_, or of the next loop that has a round; at the end if there is none.
void QueueWalk::start_loop() {
  for (; loop_ < strand_->loops.size(); ++loop_) {
    const Loop& loop = strand_->loops[loop_];
    place_.round = 0;
    const std::int64_t rounds = rounds_of(loop, place_);
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
  if (strand_ == nullptr) {
    task_ = nullptr;
    return;
  }
  if (++place_.round < rounds_) {
    task_ = strand_->loops[loop_].tasks.data();
    return;
  }
  ++loop_;
  start_loop();
}

void QueueWalk::next_with_other_peers() {
  const auto varies = [](const Task& task) { return has_peer(task.kind) && task.peer.value.round != 0; };
  if (strand_ != nullptr && task_ + 1 == loop_end_ && place_.round + 1 < rounds_) {
    const std::vector<Task>& tasks = strand_->loops[loop_].tasks;
    if (std::none_of(tasks.begin(), tasks.end(), varies)) place_.round = rounds_ - 1;
  }
  next();
}

Rank QueueWalk::peer(const Schedule& schedule, Rank rank) const {
  if (task_->kind == TaskKind::local_post) return rank;
  if (task_->peer.kind == Peer::Kind::rank) return static_cast<Rank>(task_->peer.value.base);
  const Group& group = schedule.groups[task_->peer.group];
  return group.member(rank, task_->peer.position(place_, group.size()));
}

bool same_ways(const Schedule& first, const Schedule& second) {
  const auto same_task = [](const Task& a, const Task& b) { return a.kind == b.kind && a.peer == b.peer; };
  const auto same_loop = [&](const Loop& a, const Loop& b) {
    return a.rounds == b.rounds && a.most_rounds == b.most_rounds && std::ranges::equal(a.tasks, b.tasks, same_task);
  };
  const auto same_strand = [&](const Strand& a, const Strand& b) {
    return a.group == b.group && a.first_queue == b.first_queue && a.queues == b.queues &&
           std::ranges::equal(a.loops, b.loops, same_loop);
  };
  const auto same_stage = [&](const Stage& a, const Stage& b) {
    return a.lists.empty() && b.lists.empty() && std::ranges::equal(a.strands, b.strands, same_strand);
  };
  return first.ranks == second.ranks && first.queues == second.queues && first.groups == second.groups &&
         std::ranges::equal(first.stages, second.stages, same_stage);
}

Viewer QueueWalk::source_viewer(const Schedule& schedule, Rank rank) const {
  return {rank, reads(task_->kind) ? peer(schedule, rank) : rank, place_, group()};
}

Viewer QueueWalk::destination_viewer(const Schedule& schedule, Rank rank) const {
  const bool to_peer = is_transfer(task_->kind) && !reads(task_->kind);
  return {rank, to_peer ? peer(schedule, rank) : rank, place_, group()};
}

void Movements::resolve(const Schedule& schedule, const Task& task, const Viewer& source_viewer,
                        const Viewer& destination_viewer) {
  hccl::resolve(schedule, task.source, source_viewer, sources_);
  hccl::resolve(schedule, task.destination, destination_viewer, destinations_);
  // Both lists are gone along at once.
  list_.clear();
  auto source = sources_.begin();
  auto destination = destinations_.begin();
  while (source != sources_.end() && destination != destinations_.end()) {
    const Bytes length = std::min(source->length, destination->length);
    list_.push_back({{source->buffer, source->offset, length}, {destination->buffer, destination->offset, length}});
    for (ByteRange* side : {&*source, &*destination}) {
      side->offset += length;
      side->length -= length;
    }
    if (source->length == 0) ++source;
    if (destination->length == 0) ++destination;
  }
  if (source == sources_.end() && destination == destinations_.end()) return;
  if (list_.empty()) list_.push_back({{task.source.buffer, 0, 0}, {task.destination.buffer, 0, 0}});
  for (; source != sources_.end(); ++source) list_.back().source.length += source->length;
  for (; destination != destinations_.end(); ++destination) list_.back().destination.length += destination->length;
}

}  // namespace hcclsim::hccl
