#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// The rules of meetings carried out rank by rank, every rank for itself: slow, and without classes of ranks. What
/// plan_walk.hpp says is held against it.
namespace hcclsim::test {

class RankWalk {
 public:
  explicit RankWalk(const hccl::Plan& plan) : plan_(plan) {}

  /// Whether all tasks of all ranks end, and all that meet belong together.
  bool finishes() { return well_formed() && enter() && fits() && runs(); }

 private:
  using Task = std::pair<Rank, std::uint32_t>;
  /// {family, group, call} or {source, destination, tag, message}.
  using Place = std::tuple<bool, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

  [[nodiscard]] const hccl::PlanTask& task(const Task& at) const { return plan_.role(at.first).tasks[at.second]; }

  [[nodiscard]] std::vector<std::uint32_t> groups_with(std::uint32_t family, Rank rank) const {
    std::vector<std::uint32_t> with;
    const auto& groups = plan_.families[family].groups;
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      for (const Rank member : groups[group].ranks) {
        if (member == rank) with.push_back(group);
      }
    }
    return with;
  }

  [[nodiscard]] bool well_formed() const {
    for (std::uint32_t family = 0; family < plan_.families.size(); ++family) {
      for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
        if (groups_with(family, rank).size() > 1) return false;
      }
    }
    return true;
  }

  /// Finds where every task meets others.
  bool enter() {
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      std::map<Place, std::uint64_t> calls;
      const auto& tasks = plan_.role(rank).tasks;
      for (std::uint32_t number = 0; number < tasks.size(); ++number) {
        const auto& work = tasks[number].work;
        const auto message = [&](bool sends, std::int64_t offset, std::uint32_t tag) {
          const std::int64_t peer = std::int64_t{rank} + offset;
          if (peer < 0 || peer >= plan_.ranks() || peer == rank) return false;
          const auto other = static_cast<std::uint64_t>(peer);
          const Place kind{true, sends ? rank : other, sends ? other : rank, tag, 0};
          Place place = kind;
          std::get<4>(place) = calls[kind]++;
          (sends ? sends_ : receives_)[place].push_back({rank, number});
          place_of_[{rank, number}] = place;
          return true;
        };
        if (const auto* collective = std::get_if<hccl::CollectiveTask>(&work)) {
          const std::uint32_t family = plan_.collectives[collective->collective].family;
          const std::vector<std::uint32_t> groups = groups_with(family, rank);
          if (groups.empty()) return false;
          const Place kind{false, family, groups.front(), 0, 0};
          Place place = kind;
          std::get<4>(place) = calls[kind]++;
          collectives_[place].push_back({rank, number});
          place_of_[{rank, number}] = place;
        } else if (const auto* send = std::get_if<hccl::SendTask>(&work)) {
          if (!message(true, send->offset, send->tag)) return false;
        } else if (const auto* receive = std::get_if<hccl::ReceiveTask>(&work)) {
          if (!message(false, receive->offset, receive->tag)) return false;
        }
      }
    }
    return true;
  }

  /// Whether everybody comes to every meeting, and means the same.
  bool fits() {
    for (const auto& [place, tasks] : collectives_) {
      const auto& group = plan_.families[std::get<1>(place)].groups[std::get<2>(place)];
      if (tasks.size() != group.ranks.size()) return false;
      std::set<std::uint32_t> meant;
      for (const Task& one : tasks) meant.insert(std::get<hccl::CollectiveTask>(task(one).work).collective);
      if (meant.size() != 1 || plan_.collectives[*meant.begin()].operation.ranks != tasks.size()) return false;
    }
    if (sends_.size() != receives_.size()) return false;
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const auto& [place, sends] : sends_) {
      const auto found = receives_.find(place);
      if (found == receives_.end() || sends.size() != 1 || found->second.size() != 1) return false;
      const hccl::PlanTask& send = task(sends.front());
      const hccl::PlanTask& receive = task(found->second.front());
      if (send.purpose.phase != receive.purpose.phase) return false;
      if (send.purpose.micro_batch != receive.purpose.micro_batch) return false;
      const std::uint32_t sent = std::get<hccl::SendTask>(send.work).message;
      const std::uint32_t received = std::get<hccl::ReceiveTask>(receive.work).message;
      if (plan_.messages[sent].bytes != plan_.messages[received].bytes) return false;
      pairs.insert({sent, received});
    }
    std::set<std::uint32_t> sent;
    std::set<std::uint32_t> received;
    for (const auto& [one, other] : pairs) {
      if (!sent.insert(one).second || !received.insert(other).second) return false;
    }
    return true;
  }

  /// Lets every stream go on as long as one of them can.
  bool runs() {
    std::set<Task> ended;
    std::map<Place, std::set<Task>> there;
    std::size_t all = 0;
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) all += plan_.role(rank).tasks.size();
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
        const auto& tasks = plan_.role(rank).tasks;
        std::set<std::uint32_t> blocked;  // streams
        for (std::uint32_t number = 0; number < tasks.size(); ++number) {
          const Task own{rank, number};
          if (ended.contains(own) || blocked.contains(tasks[number].stream)) continue;
          blocked.insert(tasks[number].stream);
          const bool waits = std::ranges::any_of(tasks[number].after, [&](std::uint32_t before) {
            return !ended.contains({rank, before});
          });
          if (waits) continue;
          const auto place = place_of_.find(own);
          if (place == place_of_.end()) {
            ended.insert(own);
            blocked.erase(tasks[number].stream);
            moved = true;
            continue;
          }
          std::set<Task>& met = there[place->second];
          if (!met.insert(own).second) continue;
          moved = true;
          if (met.size() == expected(place->second)) ended.insert(met.begin(), met.end());
        }
      }
    }
    return ended.size() == all;
  }

  [[nodiscard]] std::size_t expected(const Place& place) const {
    if (std::get<0>(place)) return 2;
    return plan_.families[std::get<1>(place)].groups[std::get<2>(place)].ranks.size();
  }

  const hccl::Plan& plan_;
  std::map<Place, std::vector<Task>> collectives_;
  std::map<Place, std::vector<Task>> sends_;
  std::map<Place, std::vector<Task>> receives_;
  std::map<Task, Place> place_of_;
};

}  // namespace hcclsim::test
