#include "hccl/parallel/plan/plan_difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "hccl/parallel/plan/plan_text.hpp"

namespace hcclsim::hccl {
namespace {

/// Something that a task says and its line does not show.
struct Fact {
  std::string_view name;
  std::string value;
};

/// Returns the sum of a time over the kernels of a block.
Seconds sum_of(Seconds models::Kernel::*time, const Role& role, const KernelBlock& block) {
  Seconds sum = 0;
  for (std::uint32_t k = block.first; k < block.first + block.count; ++k) sum += role.program->kernels[k].*time;
  return sum;
}

std::vector<Fact> facts_of(PlanWords& words, std::size_t number, const PlanTask& task) {
  const Plan& plan = words.plan();
  std::vector<Fact> facts{{"chunk", fmt::format("{}", task.purpose.chunk)}};
  if (task.purpose.segment != Purpose::none) facts.push_back({"segment", fmt::format("{}", task.purpose.segment)});
  const std::string every = task.steps.every == 1 ? "" : fmt::format(", every {}", task.steps.every);
  facts.push_back({"steps", fmt::format("{}-{}{}", task.steps.begin, task.steps.end, every)});
  if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
    const Role& role = plan.roles[number];
    facts.push_back({"time", fmt::format("{} s", sum_of(&models::Kernel::duration, role, *block))});
    facts.push_back({"idle", fmt::format("{} s", sum_of(&models::Kernel::idle, role, *block))});
  } else if (const auto* call = std::get_if<CollectiveTask>(&task.work)) {
    const PlannedCollective& collective = plan.collectives[call->collective];
    const BlockCounts& counts = collective.operation.counts;
    facts.push_back({"elements", counts.empty() ? fmt::to_string(collective.operation.elements)
                                                : fmt::format("{}", fmt::join(counts.counts(), " "))});
    facts.push_back({"algorithm", collective.schedules.empty() ? "unknown" : collective.algorithm()});
    facts.push_back({"groups", words.groups(number, collective.family)});
  }
  return facts;
}

/// The facts of the first that the second has not.
std::string beside(const std::vector<Fact>& facts, const std::vector<Fact>& others) {
  std::vector<std::string> own;
  for (const Fact& fact : facts) {
    const auto same = [&](const Fact& other) { return other.name == fact.name && other.value == fact.value; };
    if (std::ranges::none_of(others, same)) own.push_back(fmt::format("{} {}", fact.name, fact.value));
  }
  return own.empty() ? "" : fmt::format(" [{}]", fmt::join(own, ", "));
}

/// Roles of every stage in the order of their first ranks: the same whatever their numbers are.
std::map<std::uint32_t, std::vector<std::size_t>> roles_by_stage(const PlanWords& words) {
  std::map<std::uint32_t, std::vector<std::size_t>> roles;
  for (std::size_t number = 0; number < words.plan().roles.size(); ++number) {
    roles[words.plan().roles[number].stage].push_back(number);
  }
  for (auto& [stage, numbers] : roles) {
    std::ranges::sort(numbers, {}, [&](std::size_t number) { return words.ranks(number); });
  }
  return roles;
}

/// One Plan of the two.
struct Side {
  PlanWords words;
  std::map<std::uint32_t, std::vector<std::size_t>> roles;

  explicit Side(const Plan& plan) : words(plan), roles(roles_by_stage(words)) {}

  [[nodiscard]] std::optional<std::size_t> role(std::uint32_t stage, std::size_t place) const {
    const auto found = roles.find(stage);
    if (found == roles.end() || place >= found->second.size()) return std::nullopt;
    return found->second[place];
  }

  /// Tasks of every stream of a role, by the names of the streams.
  [[nodiscard]] std::map<std::string, std::vector<std::size_t>> streams(std::optional<std::size_t> role) const {
    std::map<std::string, std::vector<std::size_t>> tasks;
    if (!role.has_value()) return tasks;
    const Role& one = words.plan().roles[*role];
    for (std::size_t t = 0; t < one.tasks.size(); ++t) {
      tasks[std::string(one.stream_title(one.tasks[t].stream))].push_back(t);
    }
    return tasks;
  }
};

class Comparison {
 public:
  Comparison(const Plan& one, const Plan& other) : one_(one), other_(other) {}

  std::vector<PlanDifference> run() {
    compare_families();
    std::map<std::uint32_t, std::size_t> stages;
    for (const Side* side : {&one_, &other_}) {
      for (const auto& [stage, roles] : side->roles) stages[stage] = std::max(stages[stage], roles.size());
    }
    for (const auto& [stage, count] : stages) {
      for (std::size_t place = 0; place < count; ++place) {
        compare_roles(stage, one_.role(stage, place), other_.role(stage, place));
      }
    }
    return std::move(found_);
  }

 private:
  using RoleNumber = std::optional<std::size_t>;

  void compare_families() {
    const std::vector<GroupFamily>& first = one_.words.plan().families;
    const std::vector<GroupFamily>& second = other_.words.plan().families;
    for (std::size_t family = 0; family < std::max(first.size(), second.size()); ++family) {
      const auto groups = [family](const std::vector<GroupFamily>& of) {
        return family < of.size() ? std::span<const Communicator>(of[family].groups) : std::span<const Communicator>();
      };
      for (std::size_t i = 0; i < std::max(groups(first).size(), groups(second).size()); ++i) {
        const auto text = [i](std::span<const Communicator> of) {
          return i < of.size() ? fmt::format("{} ({})", of[i].name, ranks_text(of[i].ranks)) : std::string();
        };
        add({std::nullopt, "the Plan", fmt::format("groups of family {}", family), i, text(groups(first)),
             text(groups(second))});
      }
    }
  }

  void compare_roles(std::uint32_t stage, RoleNumber first, RoleNumber second) {
    const std::string whose = first.has_value() ? one_.words.title(*first) : other_.words.title(*second);
    const auto ranks = [](const Side& side, RoleNumber role) {
      return role.has_value() ? ranks_text(side.words.ranks(*role)) : std::string();
    };
    add({stage, whose, "ranks", 0, ranks(one_, first), ranks(other_, second)});
    const auto kinds = [](const Side& side, RoleNumber role) {
      std::vector<std::string_view> names;
      if (!role.has_value()) return std::string();
      for (const StreamKind kind : side.words.plan().roles[*role].streams) names.push_back(name_of(kind));
      return fmt::format("{}", fmt::join(names, ", "));
    };
    add({stage, whose, "streams", 0, kinds(one_, first), kinds(other_, second)});
    const auto tasks = one_.streams(first);
    const auto others = other_.streams(second);
    std::map<std::string, std::size_t> counts;
    for (const auto* streams : {&tasks, &others}) {
      for (const auto& [name, list] : *streams) counts[name] = std::max(counts[name], list.size());
    }
    for (const auto& [name, count] : counts) {
      for (std::size_t place = 0; place < count; ++place) {
        const auto task = [&name = name, place](const auto& streams) -> std::optional<std::size_t> {
          const auto stream = streams.find(name);
          if (stream == streams.end() || place >= stream->second.size()) return std::nullopt;
          return stream->second[place];
        };
        compare_tasks({stage, whose, name, place, {}, {}}, {first, task(tasks)}, {second, task(others)});
      }
    }
  }

  struct TaskNumber {
    RoleNumber role;
    std::optional<std::size_t> task;
  };

  void compare_tasks(PlanDifference at, const TaskNumber& first, const TaskNumber& second) {
    const auto say = [](Side& side, const TaskNumber& number, std::string& line, std::vector<Fact>& facts) {
      if (!number.task.has_value()) return;
      line = side.words.line(*number.role, *number.task);
      facts = facts_of(side.words, *number.role, side.words.plan().roles[*number.role].tasks[*number.task]);
    };
    std::vector<Fact> facts;
    std::vector<Fact> others;
    say(one_, first, at.first, facts);
    say(other_, second, at.second, others);
    if (first.task.has_value() && second.task.has_value()) {
      at.first += beside(facts, others);
      at.second += beside(others, facts);
    }
    add(std::move(at));
  }

  void add(PlanDifference difference) {
    if (difference.first != difference.second) found_.push_back(std::move(difference));
  }

  Side one_;
  Side other_;
  std::vector<PlanDifference> found_;
};

}  // namespace

std::vector<PlanDifference> differences(const Plan& one, const Plan& other) { return Comparison(one, other).run(); }

}  // namespace hcclsim::hccl
