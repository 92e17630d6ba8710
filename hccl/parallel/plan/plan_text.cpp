#include "hccl/parallel/plan/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <variant>

namespace hcclsim::hccl {
namespace {

/// What a line shows of many.
constexpr std::size_t most_groups_of_line = 4;
constexpr std::size_t most_runs_of_line = 4;
constexpr std::size_t runs_of_large_group = 3;

/// "0-3", "6": runs of ranks that follow each other.
std::vector<std::string> runs_of(std::span<const Rank> ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    runs.push_back(end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]));
    i = end;
  }
  return runs;
}

/// "ranks 0,8,16,... (128)"
std::string brief_ranks(std::span<const Rank> ranks) {
  std::vector<std::string> runs = runs_of(ranks);
  if (runs.size() <= most_runs_of_line) return ranks_text(ranks);
  runs.resize(runs_of_large_group);
  return fmt::format("ranks {},... ({})", fmt::join(runs, ","), ranks.size());
}

bool has_chunks(const Plan& plan) {
  return std::ranges::any_of(plan.roles, [](const Role& role) {
    return std::ranges::any_of(role.tasks, [](const PlanTask& task) { return task.purpose.chunk > 0; });
  });
}

std::string steps_text(const StepRange& steps) {
  if (steps.every != 1) return fmt::format("; in step {} and every {} behind it", steps.begin + 1, steps.every);
  if (steps.end != StepRange::no_end) return fmt::format("; in the first {} steps", steps.end);
  return steps.begin > 0 ? fmt::format("; behind the first {} steps", steps.begin) : "";
}

}  // namespace

std::string ranks_text(std::span<const Rank> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(runs_of(ranks), ","));
}

PlanWords::PlanWords(const Plan& plan) : plan_(plan), chunks_(has_chunks(plan)), ranks_(plan.roles.size()) {
  for (Rank rank = 0; rank < plan.ranks(); ++rank) ranks_[plan.role_of[rank]].push_back(rank);
  for (const Role& role : plan.roles) ++roles_of_stage_[role.stage];
}

std::string PlanWords::title(std::size_t role) const {
  const std::uint32_t stage = plan_.roles[role].stage;
  if (roles_of_stage_.at(stage) == 1) return fmt::format("stage {}", stage);
  return fmt::format("stage {} {}", stage, ranks_text(ranks_[role]));
}

const PlanWords::GroupTexts& PlanWords::texts_of(std::size_t role, std::uint32_t family) {
  const auto [place, is_new] = groups_.try_emplace({role, family});
  GroupTexts& texts = place->second;
  if (!is_new) return texts;
  std::vector<std::string> brief;
  std::vector<std::string> whole;
  for (const Communicator& group : plan_.families[family].groups) {
    const auto has_role = [&](Rank rank) { return plan_.role_of[rank] == role; };
    if (std::ranges::none_of(group.ranks, has_role)) continue;
    brief.push_back(fmt::format("{} ({})", group.name, brief_ranks(group.ranks)));
    whole.push_back(fmt::format("{} ({})", group.name, ranks_text(group.ranks)));
  }
  texts.whole = fmt::format("{}", fmt::join(whole, ", "));
  if (brief.size() > most_groups_of_line) {
    const std::size_t others = brief.size() - (most_groups_of_line - 1);
    brief.resize(most_groups_of_line - 1);
    texts.brief = fmt::format("groups {} and {} more", fmt::join(brief, ", "), others);
  } else {
    texts.brief = fmt::format("group{} {}", brief.size() == 1 ? "" : "s", fmt::join(brief, ", "));
  }
  return texts;
}

std::string PlanWords::pass(const Purpose& purpose) const {
  const bool of_chunk = chunks_ && (purpose.phase == StepPhase::forward || purpose.phase == StepPhase::backward);
  return fmt::format("{} micro-batch {}{}", name_of(purpose.phase), purpose.micro_batch,
                     of_chunk ? fmt::format(" chunk {}", purpose.chunk) : "");
}

std::string PlanWords::work(std::size_t role, const PlanTask& task) {
  if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
    const std::vector<models::Kernel>& kernels = plan_.roles[role].program->kernels;
    const std::string& first = kernels[block->first].name;
    if (block->count == 1) return first;
    return fmt::format("{} .. {} ({} kernels)", first, kernels[block->first + block->count - 1].name, block->count);
  }
  if (const auto* call = std::get_if<CollectiveTask>(&task.work)) {
    const PlannedCollective& collective = plan_.collectives[call->collective];
    const Operation& operation = collective.operation;
    const std::string root = is_rooted(operation.collective) ? fmt::format(", root {}", operation.root) : "";
    return fmt::format("{}: {} of {} bytes, {}{}, over {} ranks in {}", collective.name, name_of(operation.collective),
                       operation.payload(), name_of(operation.type), root, operation.ranks,
                       texts_of(role, collective.family).brief);
  }
  if (const auto* send = std::get_if<SendTask>(&task.work)) {
    return fmt::format("{}: send {} bytes to rank {:+}, tag {}", plan_.messages[send->message].name,
                       plan_.messages[send->message].bytes, send->offset, send->tag);
  }
  if (const auto* receive = std::get_if<ReceiveTask>(&task.work)) {
    return fmt::format("{}: receive {} bytes from rank {:+}, tag {}", plan_.messages[receive->message].name,
                       plan_.messages[receive->message].bytes, receive->offset, receive->tag);
  }
  if (const auto* input = std::get_if<InputWork>(&task.work)) {
    return fmt::format("data workers prepare {} samples", input->samples);
  }
  if (const auto* copy = std::get_if<HostCopy>(&task.work)) {
    return fmt::format("copy of {} bytes from {}", copy->bytes,
                       copy->back ? "the device to the host" : "the host to the device");
  }
  return fmt::format("host {} s", std::get<HostWork>(task.work).duration);
}

std::string PlanWords::line(std::size_t role, std::size_t task) {
  const PlanTask& one = plan_.roles[role].tasks[task];
  return fmt::format("{}: {}, {}{}{}", task, pass(one.purpose), work(role, one),
                     one.after.empty() ? "" : fmt::format("; after {}", fmt::join(one.after, ", ")),
                     steps_text(one.steps));
}

std::vector<StreamText> streams_of(const Plan& plan) {
  std::vector<StreamText> streams;
  PlanWords words(plan);
  for (std::size_t number = 0; number < plan.roles.size(); ++number) {
    const Role& role = plan.roles[number];
    const std::size_t first = streams.size();
    for (std::uint32_t stream = 0; stream < role.streams.size(); ++stream) {
      streams.push_back({words.title(number), std::string(role.stream_title(stream)), {}});
    }
    for (std::size_t task = 0; task < role.tasks.size(); ++task) {
      streams[first + role.tasks[task].stream].lines.push_back(words.line(number, task));
    }
  }
  std::erase_if(streams, [](const StreamText& stream) { return stream.lines.empty(); });
  return streams;
}

}  // namespace hcclsim::hccl
