#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hccl/check/program/task_program.hpp"

/// Runs a program in one order that its synchronisation allows, and shows every task to an observer. The levels of the
/// checker are such observers. A queue goes on until it waits; posts wake it. The order depends on the program alone.
///
/// An observer has these functions:
///
///     // A stage of a rank begins on these queues.
///     void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end);
///     // A rank has done all its tasks.
///     void leave(Rank rank);
///     // A task is done.
///     void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task);
namespace hcclsim::hccl {

enum class RunEnd : std::uint8_t {
  completed,
  deadlock,
  overwritten,  ///< a notify was posted again before it was waited for
  two_waiters,  ///< two queues wait for a notify at the same time
};

template <typename Observer>
class TaskRun {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// A chain and where it stands.
  struct Chain {
    const ProgramPart* part = nullptr;  // of the current stage; null if the queue has none or has ended it
    std::uint32_t done = 0;             // tasks of the part
    std::uint32_t issued = 0;           // tasks of the queue, if its depth is limited
  };
  struct Slot {
    std::uint32_t poster = none;  // chain of the post that was not waited for yet
    std::uint32_t number = 0;     // of that post
    std::uint32_t waiter = none;  // chain that waits
  };

  /// The program must have passed L0. `queue_depth` as in CheckOptions.
  TaskRun(const TaskProgram& program, Observer& observer, std::uint32_t queue_depth = 0)
      : program_(program),
        observer_(observer),
        depth_(queue_depth),
        chains_(program.chains()),
        slots_(std::size_t{program.unrolled()} * program.notifies),
        ranks_(program.unrolled()) {}

  RunEnd run() {
    for (Rank rank = 0; rank < program_.unrolled(); ++rank) {
      ranks_[rank].next_part = program_.first_part[rank];
      ranks_[rank].issuing_part = program_.first_part[rank];
      issue(rank);
      enter_stage(rank);
    }
    std::vector<std::uint32_t> ready;
    while (!ready_.empty() && !stopped_) {
      ready.swap(ready_);
      for (const std::uint32_t chain : ready) advance(chain);
      ready.clear();
    }
    if (stopped_) return *stopped_;
    return finished_ == program_.unrolled() ? RunEnd::completed : RunEnd::deadlock;
  }

  // Where a run that did not complete stands.
  [[nodiscard]] const Chain& chain(std::uint32_t number) const { return chains_[number]; }
  /// The chain that keeps the host from issuing further tasks of a rank, or none.
  [[nodiscard]] std::uint32_t full_queue(Rank rank) const { return ranks_[rank].full; }
  /// overwritten: the post that was lost, and the one that came too early; two_waiters: both waits.
  [[nodiscard]] TaskId first() const { return first_; }
  [[nodiscard]] TaskId second() const { return second_; }

 private:
  struct RankState {
    std::size_t next_part = 0;  // of the stage that comes next
    std::uint32_t running = 0;  // queues that have not ended the stage
    std::size_t issuing_part = 0;
    std::uint32_t full = none;
  };

  /// The host issues tasks in the order of the parts until a queue is full.
  void issue(Rank rank) {
    if (depth_ == 0) return;
    RankState& state = ranks_[rank];
    state.full = none;
    for (; state.issuing_part < program_.first_part[rank + 1]; ++state.issuing_part) {
      const ProgramPart& part = program_.parts[state.issuing_part];
      const std::uint32_t chain = program_.chain(rank, part.queue);
      const std::uint32_t end = part.number + part.count;
      const std::uint32_t before = chains_[chain].issued;
      chains_[chain].issued = std::min(end, tasks_done(chain) + depth_);
      if (chains_[chain].issued != before && chains_[chain].part != nullptr) ready_.push_back(chain);
      if (chains_[chain].issued == end) continue;
      state.full = chain;
      return;
    }
  }

  /// Tasks that a queue has done, over all stages.
  [[nodiscard]] std::uint32_t tasks_done(std::uint32_t chain) const {
    const Chain& state = chains_[chain];
    return state.part == nullptr ? state.done : state.part->number + state.done;
  }

  void enter_stage(Rank rank) {
    RankState& state = ranks_[rank];
    const std::size_t begin = state.next_part;
    const std::size_t end = program_.first_part[rank + 1];
    if (begin == end) {
      ++finished_;
      observer_.leave(rank);
      return;
    }
    while (state.next_part < end && program_.parts[state.next_part].stage == program_.parts[begin].stage) {
      const ProgramPart& part = program_.parts[state.next_part++];
      Chain& chain = chains_[program_.chain(rank, part.queue)];
      chain.part = &part;
      chain.done = 0;
      ready_.push_back(program_.chain(rank, part.queue));
    }
    state.running = static_cast<std::uint32_t>(state.next_part - begin);
    observer_.enter(rank, program_.parts.data() + begin, program_.parts.data() + state.next_part);
  }

  void advance(std::uint32_t number) {
    Chain& chain = chains_[number];
    if (chain.part == nullptr) return;
    const ProgramPart& part = *chain.part;
    const Rank rank = program_.rank_of(number);
    for (; chain.done < part.count; ++chain.done) {
      const std::uint32_t task_number = part.number + chain.done;
      if (depth_ != 0 && task_number >= chain.issued) {
        issue(rank);
        if (task_number >= chain.issued) return;
      }
      if (!perform(number, task_number, rank, program_.tasks[part.first + chain.done])) {
        if (depth_ != 0 && ranks_[rank].full != none) issue(rank);
        return;
      }
    }
    chain.part = nullptr;
    chain.done = part.number + part.count;
    if (depth_ != 0) issue(rank);
    if (--ranks_[rank].running == 0) enter_stage(rank);
  }

  /// Does one task; false if it has to wait, or if the run is over.
  bool perform(std::uint32_t chain, std::uint32_t number, Rank rank, const ProgramTask& task) {
    if (is_wait(task.kind)) {
      Slot& slot = slots_[std::size_t{rank} * program_.notifies + task.value];
      if (slot.poster == none) {
        if (slot.waiter != none && slot.waiter != chain) stop(RunEnd::two_waiters, task_at(slot.waiter), chain, number);
        slot.waiter = chain;
        return false;
      }
      observer_.perform(chain, number, task);
      slot.poster = none;
      return true;
    }
    if (is_post(task.kind)) {
      Slot& slot = slots_[std::size_t{program_.representative(task.peer)} * program_.notifies + task.value];
      if (slot.poster != none) {
        stop(RunEnd::overwritten, program_.task_id(slot.poster, slot.number), chain, number);
        return false;
      }
      slot.poster = chain;
      slot.number = number;
      if (slot.waiter != none) ready_.push_back(slot.waiter);
      slot.waiter = none;
    }
    observer_.perform(chain, number, task);
    return true;
  }

  /// The run is over; the first reason counts.
  void stop(RunEnd end, const TaskId& first, std::uint32_t chain, std::uint32_t number) {
    if (stopped_) return;
    stopped_ = end;
    first_ = first;
    second_ = program_.task_id(chain, number);
  }
  /// The task at which a chain stands.
  [[nodiscard]] TaskId task_at(std::uint32_t chain) const { return program_.task_id(chain, tasks_done(chain)); }

  const TaskProgram& program_;
  Observer& observer_;
  std::uint32_t depth_;
  std::vector<Chain> chains_;
  std::vector<Slot> slots_;
  std::vector<RankState> ranks_;
  std::vector<std::uint32_t> ready_;
  Rank finished_ = 0;
  std::optional<RunEnd> stopped_;
  TaskId first_;
  TaskId second_;
};

/// An observer that looks at nothing.
struct NoObserver {
  void enter(Rank /*rank*/, const ProgramPart* /*begin*/, const ProgramPart* /*end*/) {}
  void leave(Rank /*rank*/) {}
  void perform(std::uint32_t /*chain*/, std::uint32_t /*number*/, const ProgramTask& /*task*/) {}
};

}  // namespace hcclsim::hccl
