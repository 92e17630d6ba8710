#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// What all algorithms share: a Schedule under construction that hands out groups, notify slots and scratch memory.
/// Algorithms work in place, on `output`, with all blocks on every rank (Operation).
namespace hcclsim::hccl {

/// A part of a collective: it takes place among the members of `group`, on the part of the payload that `parent` picks.
struct Level {
  std::uint16_t group = 0;
  std::vector<Cut> parent{};
  /// Transfers reduce on their way; otherwise they go to scratch memory and an AI core reduces.
  bool inline_reduce = true;
  /// If the payload has blocks: shares are nevertheless slices of every block.
  bool slices_of_blocks = false;
  /// Shares that are slices begin at multiples of a finer slice (Cut::neighbours).
  std::uint32_t neighbours = 1;
};

class Builder {
 public:
  /// Throws what require_possible throws.
  Builder(const Operation& operation, std::string algorithm);

  std::uint16_t add_group(Group group);
  /// Some places (0 … span−1) of the blocks of a group, in this order.
  std::uint16_t add_part(std::uint16_t whole, std::vector<Rank> places);
  [[nodiscard]] const Group& group(std::uint16_t number) const { return schedule_.groups[number]; }
  [[nodiscard]] Rank size(std::uint16_t group) const { return schedule_.groups[group].size(); }

  /// The payload has a block for every rank.
  [[nodiscard]] bool has_blocks() const { return schedule_.blocks() > 1; }

  /// What position `index` of the level's group is responsible for: `count` shares, `step` apart. If the payload has a
  /// block for every rank, the shares are blocks among those that the level's parent picks, or runs of blocks if there
  /// are more blocks than positions, with the slices of them that the parent picks; otherwise the shares are slices. In
  /// a group of all ranks of its span in an order of its own, the share of a position is that of its place.
  [[nodiscard]] std::vector<Cut> share(const Level& level, Linear index, std::uint32_t count = 1,
                                       std::uint32_t step = 1) const;

  /// Reserves `count` notify slots of every rank; returns the first.
  std::int32_t reserve_notifies(std::uint32_t count);
  /// The slot that is reserved next. Going back to an earlier slot is allowed for other ranks, or for ranks with the
  /// same peers.
  [[nodiscard]] std::int32_t next_notify() const { return next_notify_; }
  void reserve_again_from(std::int32_t slot) { next_notify_ = slot; }
  /// Goes on behind all slots that were ever reserved.
  void reserve_behind_all() { next_notify_ = static_cast<std::int32_t>(schedule_.notifies); }
  /// Reserves `slots` slots of scratch memory, each as large as the largest slice that `cuts` give; returns the stride.
  /// Different stages use the same memory.
  Bytes reserve_scratch(std::uint32_t slots, const std::vector<Cut>& cuts);

  Stage& add_stage(std::string name);
  [[nodiscard]] std::vector<Stage>& stages() { return schedule_.stages; }
  /// The schedule, with its number of queues filled in.
  [[nodiscard]] Schedule finish() &&;

 private:
  [[nodiscard]] Bytes most_left(std::span<const Cut> cuts, Bytes length) const;

  Schedule schedule_;
  std::int32_t next_notify_ = 0;
};

// Short forms for tasks and ranges.
[[nodiscard]] Range input(std::vector<Cut> cuts);
[[nodiscard]] Range output(std::vector<Cut> cuts);
[[nodiscard]] Range scratch(std::vector<Cut> cuts, Linear slot, Bytes stride);
/// `cuts` with one more.
[[nodiscard]] std::vector<Cut> append(std::vector<Cut> cuts, Cut cut);

/// Position own + offset.
[[nodiscard]] Peer peer_at(std::uint16_t group, Linear offset);
[[nodiscard]] Task post(Peer peer, Linear slot);
[[nodiscard]] Task wait(Linear slot);
[[nodiscard]] Task transfer(TaskKind kind, Peer peer, Range source, Range destination);
[[nodiscard]] Task copy(Range source, Range destination);
[[nodiscard]] Task reduce(Range source, Range destination, bool by_core);
/// A step in which every rank lets `from` begin, does `move` when `to` lets it, and waits until `from` has ended.
[[nodiscard]] std::vector<Task> step(Peer from, Peer to, Linear ready, Linear done, Task move);

}  // namespace hcclsim::hccl
