#include "hccl/training/numerics/numeric_task.hpp"

#include <algorithm>
#include <optional>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using Kind = NumericTask::Kind;

/// What a block of kernels is with real numbers; nothing if another task stands for it.
std::optional<NumericTask> task_of(const Role& role, const PlanTask& task, const KernelBlock& block) {
  switch (task.purpose.phase) {
    case StepPhase::forward:
    case StepPhase::backward:
      return NumericTask{Kind::compute, {task.purpose.micro_batch}};
    case StepPhase::check:
      // The norm and the factor of the clip follow from the reduced gradients alone.
      return role.program->overflow_flag ? std::optional(NumericTask{Kind::check}) : std::nullopt;
    case StepPhase::update: {
      NumericTask update{Kind::update};
      for (std::uint32_t k = block.first; k < block.first + block.count; ++k) {
        const std::uint32_t gradient = role.program->kernels[k].gradient;
        if (update.items.empty() || update.items.back() != gradient) update.items.push_back(gradient);
      }
      return update;
    }
    case StepPhase::reduction:
    case StepPhase::gather:
      break;
  }
  internal_error("kernels in a phase of communication");
}

}  // namespace

std::vector<NumericTask> numeric_tasks(const Plan& plan) {
  if (plan.roles.size() != 1 || plan.families.back().groups.size() != 1) {
    bad_input("numerics",
              "real gradients are those of ranks that do the same and reduce all together; in this step "
              "there are several groups");
  }
  const Role& role = plan.roles.front();
  std::vector<NumericTask> tasks;
  std::vector<std::uint32_t> computed;  // micro-batches
  const auto add = [&](const NumericTask& task) {
    if (task.kind == Kind::compute) {
      if (std::find(computed.begin(), computed.end(), task.items.front()) != computed.end()) return;
      computed.push_back(task.items.front());
    }
    if (tasks.empty() || tasks.back().kind != task.kind || task.kind == Kind::compute) {
      tasks.push_back(task);
    } else {
      tasks.back().items.insert(tasks.back().items.end(), task.items.begin(), task.items.end());
    }
  };
  for (const PlanTask& task : role.tasks) {
    if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
      if (const auto numeric = task_of(role, task, *block)) add(*numeric);
    } else if (std::holds_alternative<CollectiveTask>(task.work) && task.purpose.phase == StepPhase::reduction) {
      add({Kind::reduce, {task.purpose.segment}});
    } else if (task.purpose.phase != StepPhase::check) {  // the flag is what the checks of all replicas say
      bad_input("numerics", "a program that communicates has no real numbers yet");
    }
  }
  return tasks;
}

}  // namespace hcclsim::hccl
