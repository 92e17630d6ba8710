#include "hccl/parallel/plan/step_kinds.hpp"

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

}  // namespace hcclsim::hccl
