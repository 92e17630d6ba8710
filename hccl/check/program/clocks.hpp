#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hccl/check/program/task_program.hpp"

/// Happens-before of a program as vector clocks. An *event* is a task of a chain; its time is its number in the chain
/// plus 2. Time 1 on queue 0 of a rank is that rank's start, at which its buffers have been filled.
///
/// A full vector clock has an entry per chain, which is quadratic in the number of chains. But a chain that touches the
/// memory of a rank is mostly synchronised by that rank, or by another chain that touches it. So each chain follows
/// only some others: those that touch a memory that it touches or that its rank owns, those that wait for what it
/// posts, and `followed_by_all`. What such a clock calls ordered is ordered. It may miss an order that goes through
/// chains that do not follow the chain in question; for chains in `followed_by_all` it misses nothing, because all
/// chains pass their times on.
namespace hcclsim::hccl {

class Clocks {
 public:
  using Time = std::uint32_t;
  static constexpr Time start = 1;
  [[nodiscard]] static constexpr Time time_of(std::uint32_t number) { return number + 2; }

  /// `followed_by_all` must be sorted.
  Clocks(const TaskProgram& program, const std::vector<std::uint32_t>& followed_by_all);

  /// Event `time` of `source` happens before what `chain` does now.
  [[nodiscard]] bool ordered(std::uint32_t source, Time time, std::uint32_t chain) const {
    return source == chain || time_seen(source, chain) >= time;
  }
  /// The same for the end of `rank`; valid after leave(rank), until another rank is left or enters.
  [[nodiscard]] bool before_end(std::uint32_t source, Time time) const { return joined_[source] >= time; }

  // What happens, in the order of a run.
  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end);
  void leave(Rank rank);
  void advance(std::uint32_t chain, std::uint32_t number) { values_[own_[chain]] = time_of(number); }
  void post(std::uint32_t chain, std::size_t slot);
  void wait(std::uint32_t chain, std::size_t slot);

 private:
  struct Snapshot {
    std::uint32_t chain = 0;
    std::vector<Time> values;
  };

  [[nodiscard]] Time time_seen(std::uint32_t source, std::uint32_t chain) const;
  void join(std::uint32_t chain, const Snapshot& snapshot);
  /// Joins the clocks of all queues of a rank into joined_.
  void join(Rank rank);

  const TaskProgram& program_;
  std::vector<std::size_t> first_;       // of each chain in followed_ and values_; one more at the end
  std::vector<std::uint32_t> followed_;  // sorted for each chain
  std::vector<Time> values_;
  std::vector<std::size_t> own_;           // of each chain: where its own time is
  std::vector<Snapshot> snapshots_;        // of each notify slot that is set
  std::vector<std::vector<Time>> unused_;  // memory of snapshots
  std::vector<Time> joined_;               // by chain
  std::vector<std::uint32_t> touched_;     // of joined_
  bool all_alike_ = true;                  // every chain follows the same ones
};

}  // namespace hcclsim::hccl
