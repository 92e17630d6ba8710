#include "hccl/parallel/plan/plan_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// What a role does with others.
struct Dealings {
  std::map<std::int64_t, std::uint32_t> messages;                   ///< offset -> the first task with it
  std::map<std::uint32_t, std::vector<std::uint32_t>> collectives;  ///< family -> those that it calls, in order
};

class Classifier {
 public:
  explicit Classifier(const Plan& plan) : plan_(plan), group_of_(plan.ranks()) {
    for (const Role& role : plan.roles) dealings_.push_back(dealings_of(role));
    for (std::uint32_t family = 0; family < plan.families.size(); ++family) add_groups(family);
    for (Rank rank = 0; rank < plan.ranks(); ++rank) check_rank(rank);
    for (std::uint32_t family = 0; family < plan.families.size(); ++family) {
      for (const Communicator& group : plan.families[family].groups) check_calls(family, group);
    }
  }

  RankClasses run(std::span<const double> speeds) {
    classes_.of = plan_.role_of;
    std::map<std::pair<std::uint32_t, double>, std::uint32_t> numbers;
    for (Rank rank = 0; rank < speeds.size(); ++rank) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      classes_.of[rank] = numbers.try_emplace({plan_.role_of[rank], speeds[rank]}, next).first->second;
    }
    number_by_first_rank();
    while (split()) number_by_first_rank();
    for (const Rank rank : classes_.first) {
      auto& sets = classes_.set_of.emplace_back();
      for (const auto& [family, calls] : dealings_[plan_.role_of[rank]].collectives) {
        sets[family] = set_of_group_[group_of_[rank].at(family)];
      }
    }
    return std::move(classes_);
  }

 private:
  [[nodiscard]] Dealings dealings_of(const Role& role) const {
    Dealings dealings;
    for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
      const auto& work = role.tasks[number].work;
      if (const auto* collective = std::get_if<CollectiveTask>(&work)) {
        dealings.collectives[plan_.collectives[collective->collective].family].push_back(collective->collective);
      } else if (const auto* send = std::get_if<SendTask>(&work)) {
        dealings.messages.try_emplace(send->offset, number);
      } else if (const auto* receive = std::get_if<ReceiveTask>(&work)) {
        dealings.messages.try_emplace(receive->offset, number);
      }
    }
    return dealings;
  }

  void add_groups(std::uint32_t family) {
    for (const Communicator& group : plan_.families[family].groups) {
      for (const Rank rank : group.ranks) {
        if (group_of_[rank].try_emplace(family, groups_.size()).second) continue;
        refuse_plan(
            fmt::format("group {}: rank {} is in it twice, or in another group of its family too", group.name, rank));
      }
      groups_.push_back(&group);
    }
  }

  void check_rank(Rank rank) const {
    const Dealings& dealings = dealings_[plan_.role_of[rank]];
    for (const auto& [offset, number] : dealings.messages) {
      const std::int64_t peer = std::int64_t{rank} + offset;
      if (peer >= 0 && peer < plan_.ranks() && offset != 0) continue;
      refuse_plan(fmt::format("{}: its other end would be rank {}; accepted: 0 to {}, without rank {} itself",
                              task_title(plan_, rank, number), peer, plan_.ranks() - 1, rank));
    }
    for (const auto& [family, calls] : dealings.collectives) {
      if (group_of_[rank].contains(family)) continue;
      refuse_plan(fmt::format("stage {} rank {} calls {}, but is in no group of its family {}", plan_.role(rank).stage,
                              rank, plan_.collectives[calls.front()].name, family));
    }
  }

  /// That the members of a group call the same collectives of its family.
  void check_calls(std::uint32_t family, const Communicator& group) const {
    static const std::vector<std::uint32_t> nothing;
    const auto calls_of = [&](Rank rank) -> const std::vector<std::uint32_t>& {
      const auto& calls = dealings_[plan_.role_of[rank]].collectives;
      const auto found = calls.find(family);
      return found == calls.end() ? nothing : found->second;
    };
    const Rank first = group.ranks.front();
    const std::vector<std::uint32_t>& expected = calls_of(first);
    for (const std::uint32_t number : expected) {
      const PlannedCollective& collective = plan_.collectives[number];
      if (collective.operation.ranks == group.ranks.size()) continue;
      refuse_plan(fmt::format("{} is a collective of {} ranks; group {}, in which it is called, has {}",
                              collective.name, collective.operation.ranks, group.name, group.ranks.size()));
    }
    for (const Rank rank : group.ranks) {
      const std::vector<std::uint32_t>& other = calls_of(rank);
      if (plan_.role_of[rank] == plan_.role_of[first] || other == expected) continue;
      const auto [one, two] = std::ranges::mismatch(expected, other);
      const auto call = [&](const auto& at, const auto& of) {
        return at == of.end() ? "nothing" : plan_.collectives[*at].name;
      };
      refuse_plan(fmt::format(
          "group {}: rank {} calls {} where rank {} calls {}; all ranks of a group must call its collectives in one "
          "order",
          group.name, first, call(one, expected), rank, call(two, other)));
    }
  }

  void number_by_first_rank() {
    classes_.first.clear();
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      const auto [found, is_new] = numbers.try_emplace(classes_.of[rank], next);
      if (is_new) classes_.first.push_back(rank);
      classes_.of[rank] = found->second;
    }
  }

  /// What ranks of a class must have in common.
  [[nodiscard]] std::vector<std::uint32_t> signature(Rank rank) const {
    const Dealings& dealings = dealings_[plan_.role_of[rank]];
    std::vector<std::uint32_t> met{classes_.of[rank]};
    for (const auto& [offset, task] : dealings.messages) {
      met.push_back(classes_.of[static_cast<std::size_t>(std::int64_t{rank} + offset)]);
    }
    for (const auto& [family, calls] : dealings.collectives) {
      met.push_back(set_of_group_[group_of_[rank].at(family)]);
    }
    return met;
  }

  void find_sets() {
    std::map<RankClasses::Set, std::uint32_t> numbers;
    classes_.sets.clear();
    set_of_group_.clear();
    for (const Communicator* group : groups_) {
      std::set<std::uint32_t> members;
      for (const Rank rank : group->ranks) members.insert(classes_.of[rank]);
      RankClasses::Set set(members.begin(), members.end());
      const auto [found, is_new] = numbers.try_emplace(set, static_cast<std::uint32_t>(numbers.size()));
      if (is_new) classes_.sets.push_back(std::move(set));
      set_of_group_.push_back(found->second);
    }
  }

  /// One round; whether a class has been split.
  bool split() {
    find_sets();
    std::vector<std::vector<std::uint32_t>> of_first;
    for (const Rank rank : classes_.first) of_first.push_back(signature(rank));
    std::map<std::vector<std::uint32_t>, std::uint32_t> parts;  // of classes, but for that of their first rank
    std::vector<std::uint32_t> next = classes_.of;
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      std::vector<std::uint32_t> own = signature(rank);
      if (own == of_first[classes_.of[rank]]) continue;
      const auto number = static_cast<std::uint32_t>(of_first.size() + parts.size());
      next[rank] = parts.try_emplace(std::move(own), number).first->second;
    }
    classes_.of = std::move(next);
    return !parts.empty();
  }

  const Plan& plan_;
  std::vector<Dealings> dealings_;                                // of roles
  std::vector<const Communicator*> groups_;                       // of all families
  std::vector<std::map<std::uint32_t, std::uint32_t>> group_of_;  // of ranks: family -> index into groups_
  std::vector<std::uint32_t> set_of_group_;
  RankClasses classes_;
};

}  // namespace

RankClasses rank_classes(const Plan& plan, std::span<const double> speeds) { return Classifier(plan).run(speeds); }

std::string task_title(const Plan& plan, Rank rank, std::uint32_t task) {
  const Role& role = plan.role(rank);
  const PlanTask& at = role.tasks[task];
  return fmt::format("stage {} rank {}: {} (micro-batch {}, {} stream)", role.stage, rank, plan.name(role, {task, 0}),
                     at.purpose.micro_batch, role.stream_title(at.stream));
}

void refuse_plan(const std::string& what) { throw Error(ErrorCode::check_failed, "plan", what); }

}  // namespace hcclsim::hccl
