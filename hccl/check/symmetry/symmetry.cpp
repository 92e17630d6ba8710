#include "hccl/check/symmetry/symmetry.hpp"

#include <algorithm>
#include <vector>

#include "hccl/check/symmetry/even_order.hpp"
#include "hccl/check/symmetry/rounds_in_time.hpp"

namespace hcclsim::hccl {
namespace {

/// Elements of a payload of one block that are cut into slices at a time.
std::uint64_t sliced_elements(const Schedule& schedule) {
  return schedule.window > 0 ? std::min(schedule.window, schedule.elements) : schedule.elements;
}

/// How the bytes of a range depend on the rank.
enum class Kind : std::uint8_t {
  fixed,   ///< the same bytes for all images of a rank, and the rotation leaves them alone
  turned,  ///< those of the next image are one place further
  whole,   ///< whole regions, in which the rotation turns
  other,
};

/// Whether the images of a rank do the same with the same bytes further on, or the same in time.
enum class Sameness : std::uint8_t { bytes, time };

/// Whether the closed forms meet the conditions at the head of symmetry.hpp for a rotation by `period`.
class Reading {
 public:
  Reading(const Schedule& schedule, Rank period, Sameness sameness)
      : schedule_(schedule),
        sameness_(sameness),
        period_(period),
        turns_count_(schedule.ranks / period),
        turns_(schedule.blocks() > 1 || any_range([&](const Range& range) { return turning_cut(range) != nullptr; })),
        scratch_turns_(scratch_has_regions()),
        regions_(regions_of_turned()) {}

  [[nodiscard]] bool rotates() const {
    const auto same_rounds = [](const Strand& strand) {
      return std::ranges::all_of(strand.loops, [](const Loop& loop) { return loop.rounds.position == 0; });
    };
    return !is_rooted(schedule_.collective) && schedule_.collective != Collective::barrier &&
           every_task(same_rounds, [&](const Task& task, const Strand& strand) {
             return repeats(task, strand) && (is_notify(task.kind) || carries_bytes(task, strand));
           });
  }

  /// In time: of images, tasks have the same kind and lengths, and peers and notifies that are images.
  [[nodiscard]] bool repeats() const {
    return every_task([this](const Strand& strand) { return same_rounds_in_time(schedule_, strand); },
                      [this](const Task& task, const Strand& strand) { return repeats(task, strand); });
  }

  /// The rotation moves bytes, of this buffer.
  [[nodiscard]] bool turns() const { return turns_; }
  [[nodiscard]] bool turns(Buffer buffer) const {
    return turns_ && schedule_.holds_all(buffer) && (buffer != Buffer::scratch || scratch_turns_);
  }
  /// Regions of a payload of one block, or of its window.
  [[nodiscard]] std::uint64_t regions() const { return regions_; }

 private:
  /// Scratch memory holds the same as a buffer with all blocks, or regions in slots; it does not hold one slice after
  /// the other in the same slot.
  [[nodiscard]] bool scratch_has_regions() const {
    const auto in_layout = [](const Range& range) { return range.buffer == Buffer::scratch && range.slot_stride == 0; };
    const auto in_slots = [&](const Range& range) {
      return range.buffer == Buffer::scratch && (schedule_.blocks() > 1 || turning_cut(range) != nullptr);
    };
    return any_range(in_layout) || !any_range(in_slots);
  }

  /// Its members are the same for all ranks of a period, in the same places.
  [[nodiscard]] bool is_fixed(const Group& group) const {
    const std::uint64_t block = std::uint64_t{group.span()} * group.stride();
    return block > 0 && period_ % block == 0;
  }
  /// The position of the next image of a rank is one further; for the same in time, a constant further.
  [[nodiscard]] bool is_turned(const Group& group) const {
    return group.span() == turns_count_ && group.stride() == period_ &&
           (group.order().empty() || (sameness_ == Sameness::time && has_even_order(group)));
  }
  /// The position of the next image of a rank is a period further.
  [[nodiscard]] bool has_all(const Group& group) const {
    return group.span() == schedule_.ranks && group.stride() == 1 && group.order().empty();
  }
  [[nodiscard]] bool is_turned(std::uint16_t group) const {
    return group < schedule_.groups.size() && is_turned(schedule_.groups[group]);
  }
  /// Groups that do not exist are found by L0.
  [[nodiscard]] bool is_fixed(std::uint16_t group) const {
    return group < schedule_.groups.size() && is_fixed(schedule_.groups[group]);
  }

  [[nodiscard]] bool same_for_images(const Linear& form, const Strand& strand) const {
    return is_fixed(strand.group) || form.position == 0;
  }

  template <typename Holds>
  [[nodiscard]] bool every_loop(const Holds& holds) const {
    for (const Stage& stage : schedule_.stages) {
      for (const Strand& strand : stage.strands) {
        for (const Loop& loop : strand.loops) {
          if (!holds(strand, loop)) return false;
        }
      }
    }
    return true;
  }

  template <typename Holds>
  [[nodiscard]] bool any_range(const Holds& holds) const {
    return !every_loop([&](const Strand& /*strand*/, const Loop& loop) {
      return std::none_of(loop.tasks.begin(), loop.tasks.end(), [&](const Task& task) {
        return !is_notify(task.kind) && (holds(task.source) || holds(task.destination));
      });
    });
  }

  /// The first cut that does not pick the same part for all images of a rank, or nullptr.
  [[nodiscard]] const Cut* turning_cut(const Range& range) const {
    const auto found =
        std::find_if_not(range.cuts.begin(), range.cuts.end(), [&](const Cut& cut) { return is_fixed(cut); });
    return found == range.cuts.end() ? nullptr : &*found;
  }

  /// Into how many parts the cuts before the turning one have cut the payload; of the first range that has one.
  [[nodiscard]] std::uint64_t regions_of_turned() const {
    std::uint64_t regions = 1;
    const bool found = any_range([&](const Range& range) {
      const Cut* const turning = turning_cut(range);
      if (turning == nullptr) return false;
      regions = parts_of(range, turning);
      return true;
    });
    return found ? regions : 1;
  }
  /// Parts of the payload of which each pick of the cuts before `end` is one; 0 if they do not pick one part each.
  [[nodiscard]] static std::uint64_t parts_of(const Range& range, const Cut* end) {
    std::uint64_t parts = 1;
    for (const Cut* cut = range.cuts.data(); cut != end; ++cut) {
      if (cut->kind != Cut::Kind::slice || cut->count != 1 || cut->neighbours != 1) return 0;
      parts *= cut->parts;
      if (parts > most_parts) return 0;
    }
    return parts;
  }

  /// Of one block: of every region, of all of it or of every window of it.
  [[nodiscard]] bool has_equal_slices() const {
    if (schedule_.alignment == 0 || regions_ == 0) return false;
    const std::uint64_t cut = sliced_elements(schedule_);
    if (cut > 0 && schedule_.elements % cut != 0) return false;
    const std::uint64_t slices = regions_ * turns_count_;
    return cut * size_of(schedule_.type) % schedule_.alignment == 0 &&
           cut * size_of(schedule_.type) / schedule_.alignment % slices == 0;
  }

  /// Whether groups and parts allow it, and `same_rounds` is true of every strand whose positions turn, `holds` of
  /// every task.
  template <typename SameRounds, typename Holds>
  [[nodiscard]] bool every_task(const SameRounds& same_rounds, const Holds& holds) const {
    if (schedule_.ranks % period_ != 0 || turns_count_ < 2 || !schedule_.counts.empty()) return false;
    const std::vector<Group>& groups = schedule_.groups;
    const auto keeps_its_form = [&](const Group& one) { return is_fixed(one) || is_turned(one) || has_all(one); };
    if (!std::all_of(groups.begin(), groups.end(), keeps_its_form)) return false;
    const auto has_lists = [](const Stage& stage) { return !stage.lists.empty(); };
    if (std::any_of(schedule_.stages.begin(), schedule_.stages.end(), has_lists)) return false;
    if (turns_ && schedule_.blocks() == 1 && !has_equal_slices()) return false;
    const auto holds_in = [&](const Strand& strand) { return is_fixed(strand.group) || same_rounds(strand); };
    const auto holds_of = [&](const Stage& stage) { return std::ranges::all_of(stage.strands, holds_in); };
    return std::ranges::all_of(schedule_.stages, holds_of) && every_loop([&](const Strand& strand, const Loop& loop) {
             return std::ranges::all_of(loop.tasks, [&](const Task& task) { return holds(task, strand); });
           });
  }

  /// A range without a turning cut is the same for all images; of one that has one, all parts are equal.
  [[nodiscard]] bool repeats(const Task& task, const Strand& strand) const {
    if (has_peer(task.kind) && !rotates(task.peer, strand)) return false;
    if (is_notify(task.kind)) return same_for_images(task.notify, strand);
    const auto repeats_in = [&](const Range& range) {
      const Cut* const turning = turning_cut(range);
      return turning == nullptr || is_turned(range, *turning);
    };
    return repeats_in(task.source) && repeats_in(task.destination);
  }

  [[nodiscard]] bool carries_bytes(const Task& task, const Strand& strand) const {
    const Kind source = kind_of(task.source, strand);
    const Kind destination = kind_of(task.destination, strand);
    if (source == Kind::other || destination == Kind::other) return false;
    return (source == Kind::whole) == (destination == Kind::whole);
  }

  [[nodiscard]] bool rotates(const Peer& peer, const Strand& strand) const {
    if (peer.kind == Peer::Kind::none || peer.group >= schedule_.groups.size()) return false;
    if (is_fixed(strand.group)) return is_fixed(peer.group);
    if (is_fixed(peer.group) || is_turned(peer.group) != is_turned(strand.group)) return false;
    return peer.kind == Peer::Kind::offset && peer.value.position == 0;
  }

  [[nodiscard]] Kind kind_of(const Range& range, const Strand& strand) const {
    const Cut* const turning = turning_cut(range);
    if (turning != nullptr && !is_turned(range, *turning)) return Kind::other;
    if (range.slot_stride != 0) return kind_of_slot(range, strand, turning);
    if (!turns_) return Kind::fixed;
    if (range.buffer == Buffer::scratch && !scratch_turns_) return Kind::other;
    if (!turns(range.buffer)) return turning == nullptr ? Kind::fixed : Kind::other;
    if (turning != nullptr) return Kind::turned;
    return picks_regions(range) ? Kind::whole : Kind::other;
  }

  /// Cuts of a slot give its length alone; all parts of the turning one are as long as each other.
  [[nodiscard]] Kind kind_of_slot(const Range& range, const Strand& strand, const Cut* turning) const {
    if (range.buffer != Buffer::scratch || !same_for_images(range.slot, strand)) return Kind::other;
    if (!turns(Buffer::scratch)) return Kind::fixed;
    if (turning != nullptr || schedule_.blocks() > 1 || !picks_regions(range)) return Kind::other;
    const Bytes region = sliced_elements(schedule_) * size_of(schedule_.type) / regions_;
    return region > 0 && range.slot_stride % region == 0 ? Kind::whole : Kind::other;
  }

  [[nodiscard]] bool is_fixed(const Cut& cut) const {
    return is_fixed(cut.group) || (cut.kind != Cut::Kind::halving && cut.index.position == 0);
  }

  /// The cut picks among the parts that the rotation turns by one; the cuts after it are fixed.
  [[nodiscard]] bool is_turned(const Range& range, const Cut& cut) const {
    const Cut* const end = range.cuts.data() + range.cuts.size();
    if (!std::all_of(&cut + 1, end, [&](const Cut& further) { return is_fixed(further); })) return false;
    if (cut.neighbours != 1 || cut.index.position != 1) return false;
    if (schedule_.blocks() > 1) {
      // One of G runs of blocks by the position among G ranks, or one of p blocks by that among p ranks.
      const bool turned = cut.parts == (is_turned(cut.group) ? turns_count_ : schedule_.ranks);
      return turned && cut.kind == Cut::Kind::block && &cut == range.cuts.data();
    }
    return is_turned(cut.group) && cut.parts == turns_count_ && cut.kind == Cut::Kind::slice &&
           parts_of(range, &cut) == regions_;
  }

  /// Without a turning cut: the cuts pick some regions, and nothing of others.
  [[nodiscard]] bool picks_regions(const Range& range) const {
    if (range.cuts.empty()) return true;
    if (schedule_.blocks() > 1) return false;
    std::uint64_t parts = 1;
    for (const Cut& cut : range.cuts) {
      if (cut.kind != Cut::Kind::slice || cut.neighbours != 1) return false;
      parts *= cut.parts;
      if (parts > most_parts) return false;
    }
    return parts > 0 && regions_ % parts == 0;
  }

  static constexpr std::uint64_t most_parts = std::uint64_t{1} << 31U;

  const Schedule& schedule_;
  Sameness sameness_;
  Rank period_;
  Rank turns_count_;
  bool turns_;
  bool scratch_turns_;
  std::uint64_t regions_;
};

/// Numbers of ranks by which one turn may move: one, or the distance from one block of ranks to the next.
std::vector<Rank> possible_periods(const Schedule& schedule) {
  std::vector<Rank> periods{1};
  for (const Group& group : schedule.groups) {
    if (group.stride() > 1 && std::uint64_t{group.span()} * group.stride() == schedule.ranks) {
      periods.push_back(group.stride());
    }
  }
  std::sort(periods.begin(), periods.end());
  periods.erase(std::unique(periods.begin(), periods.end()), periods.end());
  return periods;
}

}  // namespace

std::optional<Rotation> Rotation::of(const Schedule& schedule) {
  if (schedule.ranks < 2) return {};
  for (const Rank period : possible_periods(schedule)) {
    const Reading reading(schedule, period, Sameness::bytes);
    if (!reading.rotates()) continue;
    Rotation rotation;
    rotation.ranks_ = schedule.ranks;
    rotation.period_ = period;
    const auto turning = [&](std::uint64_t block_elements) {
      const Bytes element = size_of(schedule.type);
      if (schedule.blocks() > 1) {
        return Turning{block_elements * element * schedule.ranks, block_elements * element * period};
      }
      const Bytes region = sliced_elements(schedule) * element / reading.regions();
      return Turning{region, region / rotation.turns()};
    };
    for (std::uint32_t number = 0; number < buffer_kinds; ++number) {
      const auto buffer = static_cast<Buffer>(number);
      if (!reading.turns(buffer)) continue;
      const bool window_apart = (buffer == Buffer::ccl || buffer == Buffer::scratch) && schedule.window > 0;
      rotation.turning_[number] = turning(window_apart ? schedule.window : schedule.elements);
    }
    if (reading.turns()) rotation.places_ = turning(schedule.elements);
    if (!rotation.fits(schedule)) return {};
    return rotation;
  }
  return {};
}

std::optional<Rank> period_in_time(const Schedule& schedule) {
  for (const Rank period : possible_periods(schedule)) {
    if (Reading(schedule, period, Sameness::time).repeats()) return period;
  }
  return {};
}

bool Rotation::fits(const Schedule& schedule) const {
  for (std::uint32_t number = 0; number < buffer_kinds; ++number) {
    const Bytes length = turning_[number].length;
    if (length > 0 && schedule.size(static_cast<Buffer>(number), 0) % length != 0) return false;
  }
  return true;
}

bool rotate_alike(const Schedule& first, const Schedule& second) {
  const std::optional<Rotation> rotation = Rotation::of(first);
  return rotation.has_value() && rotation->period() == 1 && rotation == Rotation::of(second);
}

void Rotation::turn(const Turning& turning, const ByteRange& range, Rank turns, std::vector<ByteRange>& pieces) const {
  pieces.clear();
  if (turning.length == 0 || turns == 0) {
    if (range.length > 0) pieces.push_back(range);
    return;
  }
  const Bytes end = range.offset + range.length;
  for (Bytes begin = range.offset; begin < end;) {
    const Bytes region = begin / turning.length * turning.length;
    const Bytes place = (begin - region + turns * turning.step) % turning.length;
    const Bytes length = std::min(turning.length - std::max(place, begin - region), end - begin);
    pieces.push_back({range.buffer, region + place, length});
    begin += length;
  }
}

}  // namespace hcclsim::hccl
