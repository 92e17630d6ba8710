#include "hccl/training/least_walk.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

/// Of the transfers of one rank.
class OwnTransfers {
 public:
  OwnTransfers(const Plan& plan, sim::Cluster& cluster) : plan_(plan), cluster_(cluster) {}

  Seconds of(const PlanTask& task, Rank rank) {
    if (const auto* send = std::get_if<SendTask>(&task.work)) {
      const auto peer = static_cast<Rank>(std::int64_t{rank} + send->offset);
      return of(*plan_.messages[send->message].schedule, {rank, peer}, 0);
    }
    const auto* call = std::get_if<CollectiveTask>(&task.work);
    if (call == nullptr) return 0;
    const PlannedCollective& collective = plan_.collectives[call->collective];
    const std::vector<Communicator>& groups = plan_.families[collective.family].groups;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const std::vector<Rank>& ranks = groups[group].ranks;
      const auto member = std::ranges::find(ranks, rank);
      if (member == ranks.end()) continue;
      const auto does_the_same = [&](Rank other) { return plan_.role_of[other] == plan_.role_of[rank]; };
      if (!std::ranges::all_of(ranks, does_the_same)) return 0;
      return of(*collective.schedules[group], ranks, static_cast<Rank>(member - ranks.begin()));
    }
    return 0;
  }

 private:
  Seconds of(const Schedule& schedule, const std::vector<Rank>& ranks, Rank member) {
    const auto [known, is_new] = known_.try_emplace({&schedule, ranks[member]}, 0);
    if (!is_new) return known->second;
    QueueWalk walk;
    for (std::uint32_t stage = 0; stage < schedule.stage_count(); ++stage) {
      Seconds longest = 0;
      for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
        Seconds time = 0;
        for (walk.enter(schedule, stage, member, queue); walk.task() != nullptr; walk.next()) {
          if (is_transfer(walk.task()->kind)) time += of(schedule, ranks, member, walk);
        }
        longest = std::max(longest, time);
      }
      known->second += longest;
    }
    return known->second;
  }

  Seconds of(const Schedule& schedule, const std::vector<Rank>& ranks, Rank member, const QueueWalk& walk) {
    const Rank own = ranks[member];
    const Rank peer = ranks[walk.peer(schedule, member)];
    const bool gets = reads(walk.task()->kind);
    const sim::Route& route = gets ? cluster_.route(peer, own) : cluster_.route(own, peer);
    if (route.further != nullptr) return 0;  // several queue pairs share it
    const double factor = gets ? route.read_factor : route.write_factor;
    return route.latency +
           static_cast<double>(walk.bytes(schedule, member)) * factor / cluster_.capacity(route.slowest);
  }

  const Plan& plan_;
  sim::Cluster& cluster_;
  std::map<std::pair<const Schedule*, Rank>, Seconds> known_;
};

}  // namespace

PlanWalk least_walk(const Plan& plan, sim::Cluster& cluster) {
  OwnTransfers transfers(plan, cluster);
  return walk(plan, [&](const PlanTask& task, Rank rank) { return transfers.of(task, rank); });
}

}  // namespace hcclsim::hccl
