#include "hccl/check/symmetry.hpp"

#include <algorithm>

namespace hcclsim::hccl {
namespace {

bool same_everywhere(const Linear& form) { return form.position == 0; }

/// Elements of a payload of one block that are cut into slices at a time.
std::uint64_t sliced_elements(const Schedule& schedule) {
  return schedule.window > 0 ? std::min(schedule.window, schedule.elements) : schedule.elements;
}

/// How the bytes of a range depend on the rank.
enum class Kind : std::uint8_t {
  fixed,   ///< the same bytes for all ranks, and the rotation leaves them alone
  turned,  ///< those of the next rank are one place further
  whole,   ///< all bytes of a buffer that the rotation turns
  other,
};

class Reading {
 public:
  explicit Reading(const Schedule& schedule)
      : schedule_(schedule), turns_(schedule.blocks() > 1 || cuts_by_position()), scratch_turns_(!scratch_in_slots()) {}

  /// The closed forms have the form that the head of symmetry.hpp asks for.
  [[nodiscard]] bool rotates() const {
    if (schedule_.ranks < 2 || is_rooted(schedule_.collective) || schedule_.collective == Collective::barrier ||
        !schedule_.counts.empty())
      return false;
    const auto all_ranks = [&](const Group& group) {
      return group.span() == schedule_.ranks && group.stride() == 1 && group.order().empty();
    };
    if (!std::all_of(schedule_.groups.begin(), schedule_.groups.end(), all_ranks)) return false;
    if (turns_ && schedule_.blocks() == 1 && !has_equal_slices()) return false;
    return every_loop([&](const Loop& loop) {
      return same_everywhere(loop.rounds) &&
             std::all_of(loop.tasks.begin(), loop.tasks.end(), [&](const Task& task) { return rotates(task); });
    });
  }

  /// The rotation moves bytes, of this buffer.
  [[nodiscard]] bool turns() const { return turns_; }
  [[nodiscard]] bool turns(Buffer buffer) const {
    return turns_ && schedule_.holds_all(buffer) && (buffer != Buffer::scratch || scratch_turns_);
  }

 private:
  template <typename Holds>
  [[nodiscard]] bool every_loop(const Holds& holds) const {
    for (const Stage& stage : schedule_.stages) {
      for (const Strand& strand : stage.strands) {
        if (!std::all_of(strand.loops.begin(), strand.loops.end(), holds)) return false;
      }
    }
    return true;
  }

  template <typename Holds>
  [[nodiscard]] bool any_range(const Holds& holds) const {
    return !every_loop([&](const Loop& loop) {
      return std::none_of(loop.tasks.begin(), loop.tasks.end(),
                          [&](const Task& task) { return holds(task.source) || holds(task.destination); });
    });
  }

  [[nodiscard]] bool cuts_by_position() const {
    return any_range([](const Range& range) {
      return std::any_of(range.cuts.begin(), range.cuts.end(),
                         [](const Cut& cut) { return !same_everywhere(cut.index); });
    });
  }

  [[nodiscard]] bool scratch_in_slots() const {
    return any_range([](const Range& range) { return range.buffer == Buffer::scratch && range.slot_stride != 0; });
  }

  /// Of one block: of all of it, or of every window of it.
  [[nodiscard]] bool has_equal_slices() const {
    if (schedule_.alignment == 0) return false;
    const std::uint64_t cut = sliced_elements(schedule_);
    if (cut > 0 && schedule_.elements % cut != 0) return false;
    return cut * size_of(schedule_.type) % (schedule_.ranks * schedule_.alignment) == 0;
  }

  [[nodiscard]] bool rotates(const Task& task) const {
    if (task.kind == TaskKind::wait) return same_everywhere(task.notify);
    if (task.kind == TaskKind::post || is_transfer(task.kind)) {
      if (task.peer.kind != Peer::Kind::offset || !same_everywhere(task.peer.value)) return false;
      if (task.kind == TaskKind::post) return same_everywhere(task.notify);
    }
    const Kind source = kind_of(task.source);
    const Kind destination = kind_of(task.destination);
    if (source == Kind::other || destination == Kind::other) return false;
    return (source == Kind::whole) == (destination == Kind::whole);
  }

  [[nodiscard]] Kind kind_of(const Range& range) const {
    const bool further_cuts_fixed = range.cuts.empty() || std::all_of(range.cuts.begin() + 1, range.cuts.end(),
                                                                      [](const Cut& cut) { return is_fixed(cut); });
    if (!further_cuts_fixed) return Kind::other;
    const bool in_slots = range.slot_stride != 0;
    // Cuts of a slot give its length alone; all parts of the first one are as long as each other.
    const bool first_cut_fixed = range.cuts.empty() || is_fixed(range.cuts.front());
    if (in_slots || !turns_) {
      const bool slot_fixed = !in_slots || (range.buffer == Buffer::scratch && same_everywhere(range.slot));
      return slot_fixed && (first_cut_fixed || is_turned(range.cuts.front())) ? Kind::fixed : Kind::other;
    }
    if (range.buffer == Buffer::scratch && !scratch_turns_) return Kind::other;
    if (!turns(range.buffer)) return first_cut_fixed ? Kind::fixed : Kind::other;
    if (range.cuts.empty()) return Kind::whole;
    return is_turned(range.cuts.front()) ? Kind::turned : Kind::other;
  }

  static bool is_fixed(const Cut& cut) { return cut.kind != Cut::Kind::halving && same_everywhere(cut.index); }
  /// A pick of the parts that the rotation turns by one.
  [[nodiscard]] bool is_turned(const Cut& cut) const {
    const Cut::Kind turned = schedule_.blocks() > 1 ? Cut::Kind::block : Cut::Kind::slice;
    return cut.kind == turned && cut.parts == schedule_.ranks && cut.neighbours == 1 && cut.index.position == 1;
  }

  const Schedule& schedule_;
  bool turns_;
  bool scratch_turns_;
};

}  // namespace

std::optional<Rotation> Rotation::of(const Schedule& schedule) {
  const Reading reading(schedule);
  if (!reading.rotates()) return {};
  Rotation rotation;
  rotation.ranks_ = schedule.ranks;
  const auto turning = [&](std::uint64_t block_elements) {
    const Bytes element = size_of(schedule.type);
    if (schedule.blocks() > 1) return Turning{block_elements * element * schedule.ranks, block_elements * element};
    const Bytes sliced = sliced_elements(schedule) * element;
    return Turning{sliced, sliced / schedule.ranks};
  };
  for (std::uint32_t number = 0; number < buffer_kinds; ++number) {
    const auto buffer = static_cast<Buffer>(number);
    if (!reading.turns(buffer)) continue;
    const bool window_apart = (buffer == Buffer::ccl || buffer == Buffer::scratch) && schedule.window > 0;
    rotation.turning_[number] = turning(window_apart ? schedule.window : schedule.elements);
  }
  if (reading.turns()) rotation.places_ = turning(schedule.elements);
  return rotation;
}

bool rotate_alike(const Schedule& first, const Schedule& second) {
  const std::optional<Rotation> rotation = Rotation::of(first);
  return rotation.has_value() && rotation == Rotation::of(second);
}

void Rotation::turn(const Turning& turning, const ByteRange& range, Rank by, std::vector<ByteRange>& pieces) const {
  pieces.clear();
  if (turning.length == 0 || by == 0) {
    if (range.length > 0) pieces.push_back(range);
    return;
  }
  const Bytes end = range.offset + range.length;
  for (Bytes begin = range.offset; begin < end;) {
    const Bytes region = begin / turning.length * turning.length;
    const Bytes place = (begin - region + by * turning.step) % turning.length;
    const Bytes length = std::min(turning.length - std::max(place, begin - region), end - begin);
    pieces.push_back({range.buffer, region + place, length});
    begin += length;
  }
}

}  // namespace hcclsim::hccl
