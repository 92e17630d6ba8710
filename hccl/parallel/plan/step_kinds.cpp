#include "hccl/parallel/plan/step_kinds.hpp"

#include <algorithm>

namespace hcclsim::hccl {

std::set<std::uint32_t> kinds_of_steps(const Plan& plan) {
  std::set<std::uint32_t> steps{0};
  for (const Role& role : plan.roles) {
    for (const PlanTask& task : role.tasks) {
      if (task.steps.begin > 0) steps.insert(task.steps.begin);
      if (task.steps.every > 1) steps.insert(task.steps.begin + 1);
      if (task.steps.end != StepRange::no_end) steps.insert(task.steps.end);
    }
  }
  return steps;
}

bool all_in_every_step(const Plan& plan) {
  return std::ranges::all_of(plan.roles, [](const Role& role) {
    return std::ranges::all_of(role.tasks, [](const PlanTask& task) {
      return task.steps.begin == 0 && task.steps.end == StepRange::no_end && task.steps.every == 1;
    });
  });
}

}  // namespace hcclsim::hccl
