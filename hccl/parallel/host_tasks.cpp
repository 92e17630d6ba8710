#include "hccl/parallel/host_tasks.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

std::uint32_t add_stream(Role& role, StreamKind kind, std::uint32_t lead) {
  role.streams.push_back(kind);
  if (lead > 0) {
    role.ahead.resize(role.streams.size(), 0);
    role.ahead.back() = lead;
  }
  return static_cast<std::uint32_t>(role.streams.size() - 1);
}

/// Puts tasks before all others, the last of which the first task that computes waits for.
void put_first(Role& role, std::vector<PlanTask> tasks) {
  const auto count = static_cast<std::uint32_t>(tasks.size());
  for (PlanTask& task : role.tasks) {
    for (std::uint32_t& before : task.after) before += count;
  }
  const auto computes = [](const PlanTask& task) {
    return std::holds_alternative<KernelBlock>(task.work) && task.stream == role_stream::compute;
  };
  const auto first = std::ranges::find_if(role.tasks, computes);
  if (first == role.tasks.end()) internal_error("a role of stage {} computes nothing", role.stage);
  first->after.insert(first->after.begin(), count - 1);
  role.tasks.insert(role.tasks.begin(), std::make_move_iterator(tasks.begin()), std::make_move_iterator(tasks.end()));
}

void add_input(Role& role, const InputPipeline::Batch& batch, std::uint32_t prefetch) {
  const Purpose purpose{.phase = StepPhase::input, .stage = role.stage};
  std::vector<PlanTask> tasks;
  tasks.push_back(
      {.work = InputWork{batch.samples}, .purpose = purpose, .stream = add_stream(role, StreamKind::data, prefetch)});
  if (batch.bytes > 0) {
    tasks.push_back({.work = HostCopy{batch.bytes},
                     .purpose = purpose,
                     .stream = add_stream(role, StreamKind::data, std::min(prefetch, 1U)),
                     .after = {0}});
  }
  put_first(role, std::move(tasks));
}

/// The last tasks of every stream that some step ends with.
std::vector<std::uint32_t> last_tasks(const Role& role) {
  std::vector<std::uint32_t> last;
  std::vector<bool> found(role.streams.size(), false);
  for (auto number = static_cast<std::uint32_t>(role.tasks.size()); number-- > 0;) {
    const PlanTask& task = role.tasks[number];
    if (found[task.stream] || role.lead(task.stream) > 0) continue;
    found[task.stream] = task.steps.begin == 0 && task.steps.end == StepRange::no_end && task.steps.every == 1;
    last.push_back(number);
  }
  std::ranges::sort(last);
  return last;
}

}  // namespace

void add_input(Plan& plan, const InputPipeline& input) {
  for (Role& role : plan.roles) {
    const InputPipeline::Batch& batch = input.of_stage.at(role.stage);
    if (batch.samples > 0) add_input(role, batch, input.prefetch);
  }
}

void add_checkpoints(Plan& plan, const CheckpointWrites& writes) {
  for (Role& role : plan.roles) {
    const Seconds duration = static_cast<double>(CheckpointWrites::bytes_of(*role.program)) / writes.bandwidth;
    PlanTask task{.work = HostWork{duration},
                  .purpose = {.phase = StepPhase::checkpoint, .stage = role.stage},
                  .after = last_tasks(role),
                  .steps = {.begin = writes.every - 1 - writes.steps_done % writes.every, .every = writes.every}};
    task.stream = add_stream(role, StreamKind::host, 0);
    role.tasks.push_back(std::move(task));
  }
}

std::uint32_t CheckpointWrite::next(std::uint32_t step) const {
  if (step <= steps.begin) return steps.begin;
  const std::uint32_t next = steps.begin + (step - steps.begin + steps.every - 1) / steps.every * steps.every;
  return next < steps.end ? next : StepRange::no_end;
}

bool writes_checkpoint(const PlanTask& task) {
  return task.purpose.phase == StepPhase::checkpoint && std::holds_alternative<HostWork>(task.work);
}

std::vector<CheckpointWrite> checkpoints_of(const Role& role) {
  std::vector<CheckpointWrite> writes;
  for (const PlanTask& task : role.tasks) {
    if (writes_checkpoint(task)) writes.push_back({std::get<HostWork>(task.work).duration, task.steps});
  }
  return writes;
}

Plan without_host_times(Plan plan) {
  for (Role& role : plan.roles) {
    for (PlanTask& task : role.tasks) {
      if (auto* work = std::get_if<HostWork>(&task.work)) work->duration = 0;
    }
  }
  return plan;
}

Plan with_batch_times(Plan plan, const std::vector<double>& samples_per_second) {
  std::map<std::pair<std::uint32_t, double>, std::uint32_t> timed;  // role and rate -> role
  std::vector<bool> is_timed(plan.roles.size(), false);
  const std::vector<Role> untimed = plan.roles;
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    const std::uint32_t role = plan.role_of[rank];
    const double rate = samples_per_second[rank];
    const auto [found, is_new] = timed.try_emplace({role, rate}, role);
    if (is_new && is_timed[role]) {
      found->second = static_cast<std::uint32_t>(plan.roles.size());
      plan.roles.push_back(untimed[role]);
    }
    plan.role_of[rank] = found->second;
    if (!is_new) continue;
    is_timed[role] = true;
    for (PlanTask& task : plan.roles[found->second].tasks) {
      const auto* input = std::get_if<InputWork>(&task.work);
      if (input != nullptr) task.work = HostWork{static_cast<double>(input->samples) / rate};
    }
  }
  return plan;
}

}  // namespace hcclsim::hccl
