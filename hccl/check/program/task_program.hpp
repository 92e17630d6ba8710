#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hccl/check/findings.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/schedule/walk.hpp"

/// A schedule unrolled: the tasks of every rank and queue with all numbers filled in. The checker reads this form. It
/// has no closed forms any more, so a task of a single rank can also be changed by hand.
///
/// A ring on 1024 ranks has ten million tasks, so a task takes only 12 bytes; tasks that move bytes also have a
/// Movement for every piece. If the ranks are equal up to rotation (check/symmetry/symmetry.hpp), only the first few
/// are unrolled and stand for all.
namespace hcclsim::hccl {

struct ProgramTask {
  TaskKind kind = TaskKind::copy;
  std::uint16_t pieces = 0;  ///< movements of a task that moves bytes
  Rank peer = 0;             ///< of transfers and posts
  std::uint32_t value = 0;   ///< post, wait: notify slot; others: its first movement in TaskProgram::movements
};

/// What one queue of a rank does in one stage.
struct ProgramPart {
  std::uint32_t stage = 0;
  std::uint32_t queue = 0;
  std::uint32_t number = 0;  ///< number of its first task within the queue
  std::uint32_t count = 0;   ///< of tasks
  std::size_t first = 0;     ///< in TaskProgram::tasks
};

struct TaskProgram : Operation {
  Bytes scratch = 0;
  Bytes ccl = 0;
  std::uint32_t queues = 1;
  std::uint32_t notifies = 0;
  Rank period = 0;                  ///< number of ranks that are unrolled; rank x is the image of rank x % period
  std::vector<std::string> stages;  ///< names; those of the second window follow those of the first
  std::vector<ProgramTask> tasks;
  std::vector<Movement> movements;
  std::vector<ProgramPart> parts;       ///< by rank, stage and queue
  std::vector<std::size_t> first_part;  ///< of each unrolled rank; one more at the end

  /// Ranks that are unrolled, and the one among them that stands for `rank`.
  [[nodiscard]] Rank unrolled() const { return period; }
  [[nodiscard]] Rank representative(Rank rank) const { return rank < period ? rank : rank % period; }

  /// A *chain* is a queue of a rank: what runs in order.
  [[nodiscard]] std::uint32_t chains() const { return unrolled() * queues; }
  [[nodiscard]] std::uint32_t chain(Rank rank, std::uint32_t queue) const { return rank * queues + queue; }
  [[nodiscard]] Rank rank_of(std::uint32_t chain) const { return chain / queues; }
  [[nodiscard]] TaskId task_id(std::uint32_t chain, std::uint32_t number) const {
    return {chain / queues, chain % queues, number};
  }
  [[nodiscard]] Bytes size_of_buffer(Buffer buffer, Rank owner) const {
    if (buffer == Buffer::scratch) return scratch;
    return buffer == Buffer::ccl ? ccl : size(buffer, owner);
  }
  /// What a task that moves bytes moves.
  [[nodiscard]] std::span<const Movement> movements_of(const ProgramTask& task) const {
    return {movements.data() + task.value, task.pieces};
  }
  [[nodiscard]] std::span<Movement> movements_of(const ProgramTask& task) {
    return {movements.data() + task.value, task.pieces};
  }
  [[nodiscard]] const ProgramTask& task(const TaskId& id) const;

  /// "rank 3, queue 0, task 17 (write to rank 4, output 128+64 -> scratch 0+64, stage 'ring')"; without bytes if the
  /// rank is not unrolled.
  [[nodiscard]] std::string describe(const TaskId& id) const;
};

/// Rank at which a data task reads its source, and rank at which it changes its destination.
[[nodiscard]] constexpr Rank source_rank(const ProgramTask& task, Rank rank) {
  return reads(task.kind) ? task.peer : rank;
}
[[nodiscard]] constexpr Rank destination_rank(const ProgramTask& task, Rank rank) {
  return is_transfer(task.kind) && !reads(task.kind) ? task.peer : rank;
}

/// Calls visit(id, part, task) for every task, rank by rank in the order of each rank's parts.
template <typename Visit>
void visit_tasks(const TaskProgram& program, const Visit& visit) {
  for (Rank rank = 0; rank < program.unrolled(); ++rank) {
    for (std::size_t i = program.first_part[rank]; i < program.first_part[rank + 1]; ++i) {
      const ProgramPart& part = program.parts[i];
      for (std::uint32_t k = 0; k < part.count; ++k) {
        visit(TaskId{rank, part.queue, part.number + k}, part, program.tasks[part.first + k]);
      }
    }
  }
}

/// Unrolls a schedule. Closed forms without meaning (a position outside the group, a slice of a range cut into no
/// parts, a strand hidden by another) become findings of level L0; the program can be used only if there are none.
/// With a period only the first `period` ranks are unrolled, for a schedule in which they stand for all.
[[nodiscard]] TaskProgram unroll(const Schedule& schedule, Findings& findings, std::optional<Rank> period = {});

}  // namespace hcclsim::hccl
