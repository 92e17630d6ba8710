#include "hccl/parallel/plan/plan.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

std::string_view name_of(StreamKind kind) {
  constexpr std::array<std::string_view, 5> names{"compute", "communication", "update", "host", "data"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(StepPhase phase) {
  constexpr std::array<std::string_view, 9> names{"forward", "backward", "reduction", "check",     "update",
                                                  "gather",  "result",   "input",     "checkpoint"};
  return names.at(static_cast<std::size_t>(phase));
}

StepPhase phase_of(models::Phase phase) {
  switch (phase) {
    case models::Phase::forward:
      return StepPhase::forward;
    case models::Phase::backward:
      return StepPhase::backward;
    case models::Phase::check:
      return StepPhase::check;
    case models::Phase::update:
      return StepPhase::update;
    case models::Phase::compression:
      return StepPhase::reduction;
  }
  internal_error("unknown phase {}", static_cast<int>(phase));
}

std::string_view Role::stream_title(std::uint32_t stream) const {
  const StreamKind kind = streams.at(stream);
  if (kind == StreamKind::host || kind == StreamKind::data) return name_of(kind);
  if (stream == role_stream::messages) return "messages";
  if (stream >= role_stream::compression) return kind == StreamKind::communication ? "shared" : "compression";
  if (stream == role_stream::operators) return "operators";
  return stream == role_stream::gathers ? "gathers" : name_of(kind);
}

const std::string& Plan::name(const Role& role, TaskPart at) const {
  static const std::string host = "host";
  static const std::string batch = "batch";
  static const std::string copy = "host to device";
  static const std::string checkpoint = "checkpoint";
  const auto& work = role.tasks[at.task].work;
  if (const auto* block = std::get_if<KernelBlock>(&work)) return role.program->kernels[block->first + at.part].name;
  if (const auto* collective = std::get_if<CollectiveTask>(&work)) return collectives[collective->collective].name;
  if (const auto* send = std::get_if<SendTask>(&work)) return messages[send->message].name;
  if (const auto* receive = std::get_if<ReceiveTask>(&work)) return messages[receive->message].name;
  if (const std::uint32_t kernel = role.tasks[at.task].kernel; kernel != Purpose::none) {
    return role.program->kernels[kernel].name;  // of the host, or on its way to it
  }
  if (std::holds_alternative<HostCopy>(work)) return copy;
  if (std::holds_alternative<InputWork>(work)) return batch;
  return role.tasks[at.task].purpose.phase == StepPhase::checkpoint ? checkpoint : host;
}

Plan plan_of_step(const Plan& plan, std::uint32_t step) {
  constexpr std::uint32_t none = ~0U;
  Plan result = plan;
  for (Role& role : result.roles) {
    std::vector<std::uint32_t> place_of(role.tasks.size(), none);
    std::uint32_t count = 0;
    for (std::size_t number = 0; number < role.tasks.size(); ++number) {
      if (role.tasks[number].steps.contains(step)) place_of[number] = count++;
    }
    std::vector<PlanTask> tasks;
    for (PlanTask& task : role.tasks) {
      if (!task.steps.contains(step)) continue;
      // A Plan that is to be proved may let a task wait for a later one.
      for (std::uint32_t& before : task.after) before = place_of[before];
      std::erase(task.after, none);
      task.steps = {};
      tasks.push_back(std::move(task));
    }
    role.tasks = std::move(tasks);
  }
  return result;
}

}  // namespace hcclsim::hccl
