#include "hccl/schedule/explicit_form.hpp"

#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

class Lister {
 public:
  explicit Lister(const Schedule& schedule) : schedule_(schedule) {}

  /// The lists of a stage, window by window.
  TaskLists lists_of(std::uint32_t stage) {
    std::vector<TaskList> lists;
    QueueWalk walk;
    for (std::uint32_t window = 0; window < schedule_.windows(); ++window) {
      const std::uint32_t number = window * static_cast<std::uint32_t>(schedule_.stages.size()) + stage;
      for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
        for (std::uint32_t queue = 0; queue < schedule_.queues; ++queue) {
          // Without tasks, too: the queue takes part in fork and join.
          if (!walk.enter(schedule_, number, rank, queue)) continue;
          TaskList& list = lists.emplace_back(TaskList{rank, queue, window});
          for (; walk.task() != nullptr; walk.next()) list.tasks.push_back(listed(walk, rank));
        }
      }
    }
    return TaskLists(std::move(lists));
  }

 private:
  Task listed(const QueueWalk& walk, Rank rank) {
    const Task& task = *walk.task();
    Task made;
    made.kind = task.kind;
    made.by_core = task.kind == TaskKind::reduce && task.by_core;
    if (has_peer(task.kind)) {
      made.peer = {Peer::Kind::rank, 0, {static_cast<std::int32_t>(walk.peer(schedule_, rank)), 0, 0, 0}};
    }
    if (is_notify(task.kind)) {
      made.notify.base = static_cast<std::int32_t>(walk.notify());
    } else {
      made.source = intervals_of(task.source, walk.source_viewer(schedule_, rank));
      made.destination = intervals_of(task.destination, walk.destination_viewer(schedule_, rank));
    }
    return made;
  }

  Range intervals_of(const Range& range, const Viewer& viewer) {
    resolve(schedule_, range, viewer, pieces_);
    Range made;
    made.buffer = range.buffer;
    made.intervals.reserve(pieces_.size());
    for (const ByteRange& piece : pieces_) made.intervals.push_back({piece.offset, piece.offset + piece.length});
    if (pieces_.empty()) made.intervals.push_back({});
    return made;
  }

  const Schedule& schedule_;
  std::vector<ByteRange> pieces_;
};

}  // namespace

Schedule explicit_form(const Schedule& schedule) {
  const std::uint64_t tasks = task_count(schedule);
  if (tasks > most_listed_tasks) {
    bad_input("schedule", "{} tasks are too many to be written one by one; accepted are up to {}",
              with_thousands(tasks), with_thousands(most_listed_tasks));
  }
  Schedule made = schedule;
  made.groups.clear();
  Lister lister(schedule);
  for (std::uint32_t stage = 0; stage < made.stages.size(); ++stage) {
    made.stages[stage].strands.clear();
    made.stages[stage].lists = lister.lists_of(stage);
  }
  return made;
}

}  // namespace hcclsim::hccl
