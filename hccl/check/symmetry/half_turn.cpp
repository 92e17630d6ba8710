#include "hccl/check/symmetry/half_turn.hpp"

#include <algorithm>
#include <bit>

namespace hcclsim::hccl {
namespace {

class HalfTurn {
 public:
  explicit HalfTurn(const Schedule& schedule) : schedule_(schedule), half_(schedule.ranks / 2) {}

  [[nodiscard]] bool carries() const {
    if (schedule_.ranks % 2 != 0 || is_rooted(schedule_.collective) || !schedule_.counts.empty()) return false;
    const auto keeps_its_form = [this](const Group& group) { return is_fixed(group) || is_halved(group); };
    if (!std::ranges::all_of(schedule_.groups, keeps_its_form)) return false;
    return std::ranges::all_of(schedule_.stages, [this](const Stage& stage) {
      return stage.lists.empty() && std::ranges::all_of(stage.strands, [this](const Strand& strand) {
               return strand.group < schedule_.groups.size() &&
                      std::ranges::all_of(strand.loops, [&](const Loop& loop) { return carries(loop, strand); });
             });
    });
  }

 private:
  [[nodiscard]] bool is_fixed(const Group& group) const {
    const std::uint64_t block = std::uint64_t{group.span()} * group.stride();
    return group.span() == 1 || (block > 0 && half_ % block == 0);
  }
  [[nodiscard]] bool is_halved(const Group& group) const {
    return std::uint64_t{group.span()} * group.stride() == schedule_.ranks && group.order().empty() &&
           group.span() % 2 == 0;
  }
  [[nodiscard]] bool is_fixed(std::uint16_t group) const {
    return group < schedule_.groups.size() && is_fixed(schedule_.groups[group]);
  }

  [[nodiscard]] bool carries(const Loop& loop, const Strand& strand) const {
    return same_for_images(loop.rounds, strand) &&
           std::ranges::all_of(loop.tasks, [&](const Task& task) { return carries(task, strand); });
  }

  [[nodiscard]] bool same_for_images(const Linear& form, const Strand& strand) const {
    return form.position == 0 || is_fixed(strand.group);
  }

  [[nodiscard]] bool carries(const Task& task, const Strand& strand) const {
    if (has_peer(task.kind) && !carries(task.peer, strand)) return false;
    if (is_notify(task.kind)) return same_for_images(task.notify, strand);
    return has_equal_parts(task.source) && has_equal_parts(task.destination);
  }

  [[nodiscard]] bool carries(const Peer& peer, const Strand& strand) const {
    if (is_fixed(strand.group)) return is_fixed(peer.group) && peer.kind != Peer::Kind::none;
    if (peer.group != strand.group || peer.value.position != 0) return false;
    return peer.kind == Peer::Kind::offset ||
           (peer.kind == Peer::Kind::flip && std::has_single_bit(schedule_.groups[peer.group].size()));
  }

  /// The cuts pick as many bytes for all images.
  [[nodiscard]] bool has_equal_parts(const Range& range) const {
    const auto depends = [this](const Cut& cut) {
      return !is_fixed(cut.group) && (cut.kind == Cut::Kind::halving || cut.index.position != 0);
    };
    if (std::ranges::none_of(range.cuts, depends)) return true;
    std::uint64_t slices = 1;
    for (const Cut& cut : range.cuts) {
      if (cut.kind == Cut::Kind::halving && cut.index.position != 0) return false;
      if (cut.kind == Cut::Kind::block) continue;
      constexpr std::uint64_t most = std::uint64_t{1} << 31U;
      slices *= std::uint64_t{cut.parts} * cut.neighbours;
      if (slices == 0 || slices > most) return false;
    }
    return slices == 1 || divides_block(slices);
  }

  /// Of a block, or of every window of it.
  [[nodiscard]] bool divides_block(std::uint64_t slices) const {
    const std::uint64_t cut =
        schedule_.window > 0 ? std::min(schedule_.window, schedule_.elements) : schedule_.elements;
    if (schedule_.alignment == 0 || (cut > 0 && schedule_.elements % cut != 0)) return false;
    const Bytes bytes = cut * size_of(schedule_.type);
    return bytes % schedule_.alignment == 0 && bytes / schedule_.alignment % slices == 0;
  }

  const Schedule& schedule_;
  Rank half_;
};

}  // namespace

bool half_turns_in_time(const Schedule& schedule) { return schedule.ranks >= 2 && HalfTurn(schedule).carries(); }

}  // namespace hcclsim::hccl
