#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/check/findings.hpp"
#include "hccl/check/program/interval_map.hpp"

/// Who touched which bytes, for level L3.
namespace hcclsim::hccl {

/// How an event touches bytes. Reductions whose result does not depend on their order (integers wrap around, which is
/// exact) need none among themselves.
enum class Access : std::uint8_t { read, change, free_reduction };

/// How a task touches the bytes that it changes.
[[nodiscard]] inline Access access_to_change(TaskKind kind, DataType type) {
  return reduces(kind) && !is_float(type) ? Access::free_reduction : Access::change;
}

/// The accesses to the memory of the unrolled ranks, in the order of a run. An Event is a task, or the start of the
/// rank that owns the memory; a default one is nothing:
///
///     bool exists() const;
///     bool same_queue(const Event& other) const;
///
/// What derives from it decides, and takes what is not in order (`second` is nothing: the end of the rank that owns the
/// bytes):
///
///     // Both happen now: what an event is before, and the end of the rank that has left last.
///     bool ordered(const Event& first, const Event& second) const;
///     bool before_end(const Event& event) const;
///     void suspect(const Event& first, const Event& second, const RankBytes& bytes);
///     // Both are free reductions.
///     void suspect_free(const Event& first, const Event& second);
template <typename Search, typename Event>
class AccessHistory {
 protected:
  /// `start_of(rank)`: the event at which the rank's buffers have been filled.
  template <typename StartOf>
  AccessHistory(const std::vector<std::vector<Bytes>>& borders, const StartOf& start_of)
      : ended_(borders.size() / buffer_kinds, false) {
    memories_.reserve(borders.size());
    for (std::size_t memory = 0; memory < borders.size(); ++memory) {
      memories_.emplace_back(borders[memory], History{start_of(static_cast<Rank>(memory / buffer_kinds)), {}, {}});
    }
  }

  void access(const Event& event, Rank owner, const ByteRange& range, Access how) {
    IntervalMap<History>& memory = memories_[memory_of(owner, range.buffer)];
    const Bytes end = range.offset + range.length;
    for (std::size_t i = memory.cut(range.offset); i < memory.count() && memory.begin(i) < end; ++i) {
      History& history = memory.state(i);
      const RankBytes bytes{owner, {range.buffer, memory.begin(i), memory.end(i) - memory.begin(i)}};
      if (ended_[owner]) search().suspect(event, {}, bytes);
      check_order(history.written, event, bytes);
      if (how != Access::read) history.read.for_each([&](const Event& read) { check_order(read, event, bytes); });
      if (how != Access::free_reduction) {
        history.reduced.for_each([&](const Event& reduction) { check_order(reduction, event, bytes); });
      }
      switch (how) {
        case Access::read:
          history.read.add(event);
          break;
        case Access::change:
          history = {event, {}, {}};
          break;
        case Access::free_reduction:
          history.reduced.for_each([&](const Event& reduction) {
            if (!search().ordered(reduction, event)) search().suspect_free(reduction, event);
          });
          history.reduced.add(event);
          break;
      }
    }
  }

  /// A rank has done everything; all accesses to its memory happen before its end.
  void end(Rank rank) {
    ended_[rank] = true;
    for (std::uint32_t buffer = 0; buffer < buffer_kinds; ++buffer) check_end(rank, static_cast<Buffer>(buffer));
  }

 private:
  /// Events of different queues; of each queue the last.
  class LastOfQueues {
   public:
    void add(const Event& event) {
      if (!first_.exists() || first_.same_queue(event)) {
        first_ = event;
        return;
      }
      for (Event& other : more_) {
        if (!other.same_queue(event)) continue;
        other = event;
        return;
      }
      more_.push_back(event);
    }
    template <typename Visit>
    void for_each(const Visit& visit) const {
      if (first_.exists()) visit(first_);
      for (const Event& event : more_) visit(event);
    }

   private:
    Event first_;
    std::vector<Event> more_;
  };

  /// Who touched an interval: the last change, and all reads and free reductions since.
  struct History {
    Event written;
    LastOfQueues read;
    LastOfQueues reduced;
  };

  Search& search() { return static_cast<Search&>(*this); }

  void check_order(const Event& first, const Event& second, const RankBytes& bytes) {
    if (!search().ordered(first, second)) search().suspect(first, second, bytes);
  }

  void check_end(Rank rank, Buffer buffer) {
    const IntervalMap<History>& memory = memories_[memory_of(rank, buffer)];
    for (std::size_t i = 0; i < memory.count(); ++i) {
      const History& history = memory.state(i);
      const auto check = [&](const Event& event) {
        if (!event.exists() || search().before_end(event)) return;
        search().suspect(event, {}, {rank, {buffer, memory.begin(i), memory.end(i) - memory.begin(i)}});
      };
      check(history.written);
      history.read.for_each(check);
      history.reduced.for_each(check);
    }
  }

  std::vector<IntervalMap<History>> memories_;  // by memory_of
  std::vector<char> ended_;                     // by rank
};

/// The finding that nothing orders two tasks: without a first one the start, without a second one the end of the rank
/// that owns the bytes. `both_reduce` into them, and read no other bytes.
[[nodiscard]] Finding race_finding(const TaskProgram& program, const std::optional<TaskId>& first,
                                   const std::optional<TaskId>& second, const RankBytes& bytes, bool both_reduce);
/// The finding that a use of a notify of `owner`, a post or a wait, may come before a wait has taken the post before
/// it.
[[nodiscard]] Finding notify_finding(const TaskProgram& program, const TaskId& wait, const TaskId& use, Rank owner);
/// The finding that either of two waits may take a post.
[[nodiscard]] Finding two_waiters_finding(const TaskProgram& program, const TaskId& first, const TaskId& second);

}  // namespace hcclsim::hccl
