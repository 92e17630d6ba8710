#include "hccl/runtime/collective/issue.hpp"

#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {

Issue issue_of(const device::TaskCosts& costs, LaunchMode mode, const Schedule& schedule, Rank rank) {
  if (mode == LaunchMode::graph) return {.call = costs.launch};
  const device::HostIssue& host = costs.issue;
  Issue issue{.call = host.base_for(name_of(schedule.collective))};
  if (host.task == 0) return issue;
  const Seconds all = host.task * static_cast<double>(task_count(schedule, rank));
  if (host.each_starts) {
    issue.task = host.task;
    issue.behind_the_call = all;
  } else {
    issue.together = all;
  }
  return issue;
}

}  // namespace hcclsim::hccl
