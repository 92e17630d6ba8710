#include "hccl/parallel/comm_reuse/comm_reuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_class = ~0U;
constexpr std::array<std::string_view, 3> group_parallel_names{"all_group_parallel", "same_server_group_parallel",
                                                               "no_group_parallel"};

/// Whether collectives of the operator's kind can be shared.
bool is_candidate(Collective collective) {
  return collective != Collective::broadcast && collective != Collective::send_recv;
}

/// Whether a Plan's gradients or gathered weights travel together: a collective of them, even of one alone, is then
/// one of a fusion.
bool fuses_gradients(const Role& role) {
  return std::ranges::any_of(role.segments, [](const Segment& segment) { return segment.tensors() > 1; });
}
bool fuses_weights(const Role& role) {
  return std::ranges::any_of(role.gathers, [](const WeightGather& gather) { return gather.parameters.size() > 1; });
}

std::uint32_t ceiling(std::uint64_t amount, std::uint64_t of_each) {
  return static_cast<std::uint32_t>((amount + of_each - 1) / of_each);
}

/// The classes of a Plan, by the collectives that its tasks call.
class Classes {
 public:
  Classes(const Plan& plan, const CommReuse& reuse) : plan_(plan), reuse_(reuse) {
    for (const PlannedCollective& collective : plan.collectives) class_of_.push_back(class_for(collective));
    for (std::uint32_t role = 0; role < plan.roles.size(); ++role) count(role);
    decide();
  }

  [[nodiscard]] const std::vector<ReuseClass>& all() const { return classes_; }
  /// The class of a task that calls a collective; no_class of one that has none.
  [[nodiscard]] std::uint32_t of(const Role& role, const PlanTask& task) const {
    const auto* call = std::get_if<CollectiveTask>(&task.work);
    if (call == nullptr || class_of_[call->collective] == no_class) return no_class;
    if (plan_.collectives[call->collective].segment != Purpose::none && fuses_gradients(role)) return no_class;
    if (task.purpose.phase == StepPhase::gather && fuses_weights(role)) return no_class;
    return class_of_[call->collective];
  }
  [[nodiscard]] bool is_reused(const Role& role, const PlanTask& task) const {
    const std::uint32_t one = of(role, task);
    return one != no_class && classes_[one].reused;
  }
  /// Tasks on a stream of one call.
  [[nodiscard]] std::uint32_t tasks_of(const PlannedCollective& collective) const {
    const StreamRules& rules = reuse_.streams;
    if (is_in_one_server(plan_.families[collective.family].groups.front().ranks)) return rules.server_tasks;
    return plan_.ranks() >= rules.large_world ? rules.large_tasks : rules.collective_tasks;
  }
  /// The group whose streams an operator is on; that of all groups without streams of their own is empty.
  [[nodiscard]] std::vector<Rank> streams_of(const PlannedCollective& collective) const {
    const std::vector<Rank>& ranks = plan_.families[collective.family].groups.front().ranks;
    const bool own =
        reuse_.groups == GroupParallel::all || (reuse_.groups == GroupParallel::same_server && is_in_one_server(ranks));
    return own ? ranks : std::vector<Rank>{};
  }

 private:
  [[nodiscard]] bool is_in_one_server(const std::vector<Rank>& ranks) const {
    return std::ranges::all_of(ranks,
                               [&](Rank rank) { return reuse_.servers.at(rank) == reuse_.servers.at(ranks.front()); });
  }

  std::uint32_t class_for(const PlannedCollective& collective) {
    const Operation& operation = collective.operation;
    if (!is_candidate(operation.collective) || operation.ranks < 2) return no_class;
    std::vector<std::vector<Rank>> groups;
    for (const Communicator& group : plan_.families[collective.family].groups) groups.push_back(group.ranks);
    const auto same =
        std::ranges::find_if(keys_, [&](const auto& key) { return key.first == operation && key.second == groups; });
    if (same != keys_.end()) return static_cast<std::uint32_t>(same - keys_.begin());
    classes_.push_back({.title = fmt::format("{} of {} bytes, {}, over {} ranks in groups as {}",
                                             name_of(operation.collective), operation.payload(),
                                             name_of(operation.type), operation.ranks, rank_ranges(groups.front())),
                        .tasks = tasks_of(collective),
                        .calls = std::vector<std::uint32_t>(plan_.roles.size(), 0),
                        .reason = {}});
    keys_.emplace_back(operation, std::move(groups));
    return static_cast<std::uint32_t>(keys_.size()) - 1;
  }

  void count(std::uint32_t role) {
    for (const PlanTask& task : plan_.roles[role].tasks) {
      const std::uint32_t one = of(plan_.roles[role], task);
      if (one != no_class) ++classes_[one].calls[role];
    }
  }

  /// Ranks of a group may have several roles; a class is shared by all of them or by none.
  void decide() {
    std::vector<std::uint64_t> replaced(plan_.roles.size(), 0);
    for (std::size_t number = 0; number < classes_.size(); ++number) {
      ReuseClass& one = classes_[number];
      const bool uneven = keys_[number].first.collective == Collective::alltoall && !keys_[number].first.counts.empty();
      const std::uint32_t fit = uneven ? 1 : reuse_.streams.tasks_per_stream / one.tasks;
      bool within = true;
      for (std::size_t role = 0; role < replaced.size(); ++role) {
        within = within && replaced[role] + one.calls[role] <= reuse_.limit;
      }
      const bool enough = std::ranges::all_of(one.calls, [&](std::uint32_t n) { return n == 0 || n > fit; });
      one.reused = within && enough && reuse_.limit > 0;
      if (reuse_.limit > 0 && !one.reused) one.reason = within ? "fits on a stream" : "over the limit";
      for (std::size_t role = 0; one.reused && role < replaced.size(); ++role) replaced[role] += one.calls[role];
    }
  }

  const Plan& plan_;
  const CommReuse& reuse_;
  std::vector<std::pair<Operation, std::vector<std::vector<Rank>>>> keys_;
  std::vector<ReuseClass> classes_;
  std::vector<std::uint32_t> class_of_;  ///< of each collective of the Plan
};

/// Fills streams with operators in their order, those of each group with streams of their own.
class StreamPacking {
 public:
  explicit StreamPacking(std::uint32_t tasks_per_stream) : tasks_per_stream_(tasks_per_stream) {}

  void add(const std::vector<Rank>& group, std::uint32_t tasks) {
    const auto [open, is_new] = used_.try_emplace(group, 0);
    if (is_new || open->second + tasks > tasks_per_stream_) {
      ++streams_;
      open->second = 0;
    }
    open->second += tasks;
  }
  [[nodiscard]] std::uint64_t streams() const { return streams_; }

 private:
  std::uint32_t tasks_per_stream_;
  std::map<std::vector<Rank>, std::uint32_t> used_;  ///< tasks on the last stream of a group
  std::uint64_t streams_ = 0;
};

/// The account of a role, with or without what its classes share.
StreamAccount account_of(const Plan& plan, std::uint32_t number, const Classes& classes, const StreamRules& rules,
                         bool with_reuse) {
  const Role& role = plan.roles[number];
  StreamAccount account;
  StreamPacking packing(rules.tasks_per_stream);
  std::set<std::uint32_t> shared;
  std::uint64_t kernels = 0;
  std::uint64_t calls = 0;
  for (const PlanTask& task : role.tasks) {
    if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
      kernels += block->count;
    } else if (const auto* call = std::get_if<CollectiveTask>(&task.work)) {
      if (with_reuse && classes.is_reused(role, task)) {
        shared.insert(classes.of(role, task));
        ++calls;
        continue;
      }
      const PlannedCollective& collective = plan.collectives[call->collective];
      packing.add(classes.streams_of(collective), classes.tasks_of(collective));
      ++account.operators;
    } else if (std::holds_alternative<SendTask>(task.work) || std::holds_alternative<ReceiveTask>(task.work)) {
      packing.add({}, rules.message_tasks);
      ++account.operators;
    }
  }
  account.operators += shared.size();
  account.compute = ceiling(kernels * rules.kernel_tasks, rules.tasks_per_stream);
  account.communication = packing.streams() + shared.size();
  account.secondary = account.communication * rules.secondary;
  account.compile =
      static_cast<double>(account.operators) * assumed_compile + static_cast<double>(calls) * assumed_call;
  return account;
}

/// Streams and communicators of the classes that are shared, as they are needed.
class Sharing {
 public:
  explicit Sharing(Plan& plan) : plan_(plan) {}

  /// The collective in the place of one of a class, in the communicator of the class.
  std::uint32_t collective(std::uint32_t of_class, std::uint32_t original) {
    const auto [place, is_new] = collectives_.try_emplace(of_class, 0);
    if (is_new) {
      PlannedCollective shared = plan_.collectives[original];
      GroupFamily family = plan_.families[shared.family];
      for (Communicator& group : family.groups) group.name += fmt::format("_reuse_{}", of_class);
      shared.family = static_cast<std::uint32_t>(plan_.families.size());
      plan_.families.push_back(std::move(family));
      place->second = static_cast<std::uint32_t>(plan_.collectives.size());
      plan_.collectives.push_back(std::move(shared));
    }
    return place->second;
  }

 private:
  Plan& plan_;
  std::map<std::uint32_t, std::uint32_t> collectives_;
};

}  // namespace

std::string_view name_of(GroupParallel mode) { return group_parallel_names.at(static_cast<std::size_t>(mode)); }

GroupParallel parse_group_parallel(std::string_view name) {
  const auto* const found = std::ranges::find(group_parallel_names, name);
  if (found == group_parallel_names.end()) {
    bad_input("option", "'{}' says not which groups communicate at once; accepted: {}", printable(name),
              fmt::join(group_parallel_names, ", "));
  }
  return static_cast<GroupParallel>(found - group_parallel_names.begin());
}

CommReuseSwitch parse_comm_reuse(std::string_view text) {
  if (text == "off") return {};
  const auto number = parse_number<std::int64_t>(text);
  if (!number.has_value() || *number > std::int64_t{UINT32_MAX}) {
    bad_input("environment",
              "MS_COMM_COMPILER_OPT: '{}' is no number; accepted: off, -1 for at most {} replaced operators, or their "
              "number up to {}",
              printable(text), CommReuse::default_limit, UINT32_MAX);
  }
  if (*number == -1) return {.limit = CommReuse::default_limit};
  if (*number > 0) return {.limit = static_cast<std::uint32_t>(*number)};
  return {.warning = fmt::format("communication subgraphs are not reused: MS_COMM_COMPILER_OPT (--comm-reuse) {} is "
                                 "neither -1 nor positive",
                                 *number)};
}

CommReuseReport comm_reuse_report(const Plan& plan, const CommReuse& reuse) {
  const Classes classes(plan, reuse);
  CommReuseReport report{.limit = reuse.limit, .rules = reuse.streams, .classes = {}, .roles = {}};
  std::vector<Rank> first(plan.roles.size(), 0);
  std::vector<Rank> ranks(plan.roles.size(), 0);
  for (Rank rank = plan.ranks(); rank-- > 0;) {
    first[plan.role_of[rank]] = rank;
    ++ranks[plan.role_of[rank]];
  }
  for (std::uint32_t number = 0; number < plan.roles.size(); ++number) {
    RoleAccount account{.stage = plan.roles[number].stage, .first_rank = first[number], .ranks = ranks[number]};
    for (const ReuseClass& one : classes.all()) {
      account.candidates += one.calls[number];
      account.classes += one.calls[number] > 0 ? 1 : 0;
      if (!one.reused || one.calls[number] == 0) continue;
      ++account.shared;
      account.replaced += one.calls[number];
    }
    account.before = account_of(plan, number, classes, reuse.streams, false);
    account.after = account_of(plan, number, classes, reuse.streams, true);
    report.roles.push_back(account);
  }
  for (const ReuseClass& one : classes.all()) {
    if (std::ranges::any_of(one.calls, [](std::uint32_t calls) { return calls > 0; })) report.classes.push_back(one);
  }
  return report;
}

namespace {

/// What can be done about too many streams.
std::string advice(std::uint32_t limit, const RoleAccount& role) {
  if (limit == 0) {
    return fmt::format("--comm-reuse {} shares operators that do the same",
                       role.candidates <= CommReuse::default_limit ? "-1" : fmt::to_string(role.candidates));
  }
  return fmt::format("--comm-reuse {} has replaced {} of {} operators that could be shared{}", limit, role.replaced,
                     role.candidates,
                     role.candidates > limit ? fmt::format("; --comm-reuse {} allows all", role.candidates) : "");
}

}  // namespace

void require_streams(const CommReuseReport& report) {
  for (const RoleAccount& role : report.roles) {
    const StreamAccount& account = role.after;
    if (account.streams() <= report.rules.streams) continue;
    simulated_failure("streams",
                      "stage {}: total stream number {} exceeds the limit of {}: {} for computation, {} for {} "
                      "communication operators, {} beside these; {}",
                      role.stage, account.streams(), report.rules.streams, account.compute, account.communication,
                      account.operators, account.secondary, advice(report.limit, role));
  }
}

void reuse_communication(Plan& plan, const CommReuse& reuse) {
  const Plan original = plan;
  const Classes classes(original, reuse);
  Sharing sharing(plan);
  for (std::size_t number = 0; number < plan.roles.size(); ++number) {
    const Role& before = original.roles[number];
    Role& role = plan.roles[number];
    std::map<std::uint32_t, std::uint32_t> streams;                            // of classes
    std::vector<std::optional<std::uint32_t>> last_of(before.streams.size());  // task of each stream before
    std::optional<std::uint32_t> last_call;                                    // the token
    for (std::uint32_t task = 0; task < role.tasks.size(); ++task) {
      PlanTask& call = role.tasks[task];
      std::optional<std::uint32_t>& predecessor = last_of[before.tasks[task].stream];
      if (predecessor.has_value()) call.after.push_back(*predecessor);
      predecessor = task;
      if (classes.is_reused(before, before.tasks[task])) {
        const std::uint32_t of_class = classes.of(before, before.tasks[task]);
        const auto [stream, is_new] = streams.try_emplace(of_class, static_cast<std::uint32_t>(role.streams.size()));
        if (is_new) role.streams.push_back(StreamKind::communication);
        auto& work = std::get<CollectiveTask>(call.work);
        work.collective = sharing.collective(of_class, work.collective);
        call.stream = stream->second;
        if (last_call.has_value()) call.after.push_back(*last_call);
        last_call = task;
      }
      // The order of a stream needs no words.
      std::erase_if(call.after, [&](std::uint32_t other) { return role.tasks[other].stream == call.stream; });
      std::ranges::sort(call.after);
      call.after.erase(std::unique(call.after.begin(), call.after.end()), call.after.end());
    }
  }
}

}  // namespace hcclsim::hccl
