#include "tests/support/collectives/two_queues.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "hccl/schedule/explicit_form.hpp"

namespace hcclsim::test {

using namespace hccl;

namespace {

Task local(TaskKind kind, std::uint32_t notify) {
  Task task;
  task.kind = kind;
  task.notify.base = static_cast<std::int32_t>(notify);
  task.by_core = false;
  return task;
}

}  // namespace

Schedule on_two_queues(const Schedule& schedule) {
  Schedule made = explicit_form(schedule);
  for (Stage& stage : made.stages) {
    std::vector<TaskList> lists;
    for (const TaskList& list : stage.lists) {
      const std::uint32_t notify = schedule.notifies + 2 * list.queue;
      std::array<TaskList, 2> both{TaskList{list.rank, list.queue, list.window},
                                   TaskList{list.rank, list.queue + schedule.queues, list.window}};
      for (std::uint32_t i = 0; i < list.tasks.size(); ++i) {
        std::vector<Task>& tasks = both[i % 2].tasks;
        if (i > 0) tasks.push_back(local(TaskKind::local_wait, notify + i % 2));
        tasks.push_back(list.tasks[i]);
        if (i + 1 < list.tasks.size()) tasks.push_back(local(TaskKind::local_post, notify + (i + 1) % 2));
      }
      for (TaskList& one : both) lists.push_back(std::move(one));
    }
    stage.lists = TaskLists(std::move(lists));
  }
  made.notifies += 2 * schedule.queues;
  made.queues *= 2;
  return made;
}

}  // namespace hcclsim::test
