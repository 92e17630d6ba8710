#include "hccl/check/symmetry/turns_in_time.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hccl/check/symmetry/even_order.hpp"
#include "hccl/check/symmetry/rounds_in_time.hpp"

namespace hcclsim::hccl {
namespace {

enum class Form : std::uint8_t { fixed, carried, mixed, other };

/// A turn, by what it makes of the groups of a schedule.
class TurnInTime {
 public:
  TurnInTime(const Schedule& schedule, std::vector<Form> forms, bool flips)
      : schedule_(schedule), forms_(std::move(forms)), flips_(flips) {}

  [[nodiscard]] bool carries() const {
    if (is_rooted(schedule_.collective) || !schedule_.counts.empty()) return false;
    if (std::ranges::find(forms_, Form::other) != forms_.end()) return false;
    return std::ranges::all_of(schedule_.stages, [this](const Stage& stage) {
      return stage.lists.empty() && std::ranges::all_of(stage.strands, [this](const Strand& strand) {
               return strand.group < forms_.size() &&
                      (is_fixed(strand.group) || same_rounds_in_time(schedule_, strand)) &&
                      std::ranges::all_of(strand.loops, [&](const Loop& loop) { return carries(loop, strand); });
             });
    });
  }

 private:
  [[nodiscard]] bool is_fixed(std::uint16_t group) const {
    return group < forms_.size() && forms_[group] == Form::fixed;
  }

  [[nodiscard]] bool carries(const Loop& loop, const Strand& strand) const {
    return std::ranges::all_of(loop.tasks, [&](const Task& task) { return carries(task, strand); });
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
    if (forms_[strand.group] == Form::mixed) return false;
    if (peer.group != strand.group || peer.value.position != 0) return false;
    return peer.kind == Peer::Kind::offset ||
           (flips_ && peer.kind == Peer::Kind::flip && std::has_single_bit(schedule_.groups[peer.group].size()));
  }

  /// The cuts pick as many bytes for all images.
  [[nodiscard]] bool has_equal_parts(const Range& range) const {
    const auto depends = [this](const Cut& cut) {
      return !is_fixed(cut.group) && (cut.kind == Cut::Kind::halving || cut.index.position != 0);
    };
    // Behind the last cut that depends on it, all images pick the same of parts that are equal.
    const auto behind = std::ranges::find_if(range.cuts.rbegin(), range.cuts.rend(), depends) - range.cuts.rbegin();
    std::uint64_t slices = 1;
    for (const Cut& cut : std::span(range.cuts).first(range.cuts.size() - static_cast<std::size_t>(behind))) {
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
  std::vector<Form> forms_;  // of groups
  bool flips_;
};

template <typename FormOf>
std::vector<Form> forms_of(const Schedule& schedule, const FormOf& form_of) {
  std::vector<Form> forms;
  for (const Group& group : schedule.groups) forms.push_back(group.span() == 1 ? Form::fixed : form_of(group));
  return forms;
}

}  // namespace

bool half_turns_in_time(const Schedule& schedule) {
  if (schedule.ranks < 2 || schedule.ranks % 2 != 0) return false;
  const auto form_of = [&](const Group& group) {
    const std::uint64_t block = std::uint64_t{group.span()} * group.stride();
    if (block > 0 && schedule.ranks / 2 % block == 0) return Form::fixed;
    const bool is_halved = block == schedule.ranks && group.order().empty() && group.span() % 2 == 0;
    return is_halved ? Form::carried : Form::other;
  };
  return TurnInTime(schedule, forms_of(schedule, form_of), true).carries();
}

bool turns_in_blocks_in_time(const Schedule& schedule, Rank block) {
  if (block < 2 || schedule.ranks % block != 0) return false;
  const auto form_of = [&](const Group& group) {
    if (group.stride() % block == 0) return Form::fixed;
    if (group.stride() == 1 && group.span() == schedule.ranks && block < schedule.ranks) return Form::mixed;
    return group.stride() == 1 && group.span() == block && has_even_order(group) ? Form::carried : Form::other;
  };
  return TurnInTime(schedule, forms_of(schedule, form_of), false).carries();
}

}  // namespace hcclsim::hccl
