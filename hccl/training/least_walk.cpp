#include "hccl/training/least_walk.hpp"

#include <algorithm>
#include <cstdint>
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
  OwnTransfers(const Plan& plan, sim::Cluster& cluster) : plan_(plan), cluster_(cluster) {
    for (const GroupFamily& family : plan.families) seats_.push_back(seats_of(family));
  }

  Seconds of(const PlanTask& task, Rank rank) {
    if (const auto* send = std::get_if<SendTask>(&task.work)) {
      const auto peer = static_cast<Rank>(std::int64_t{rank} + send->offset);
      return of(*plan_.messages[send->message].schedule, {rank, peer}, 0);
    }
    const auto* call = std::get_if<CollectiveTask>(&task.work);
    if (call == nullptr) return 0;
    const PlannedCollective& collective = plan_.collectives[call->collective];
    const Seat& seat = seats_[collective.family][rank];
    if (!seat.among_alike) return 0;
    const Communicator& group = plan_.families[collective.family].groups[seat.group];
    return of(*collective.schedules[seat.group], group.ranks, seat.member);
  }

 private:
  /// Of a rank in a family.
  struct Seat {
    std::uint32_t group = 0;
    Rank member = 0;
    bool among_alike = false;  ///< it is in a group whose ranks have one role
  };

  [[nodiscard]] std::vector<Seat> seats_of(const GroupFamily& family) const {
    std::vector<Seat> seats(plan_.ranks());
    for (std::uint32_t group = 0; group < family.groups.size(); ++group) {
      const std::vector<Rank>& ranks = family.groups[group].ranks;
      const bool alike =
          std::ranges::all_of(ranks, [&](Rank rank) { return plan_.role_of[rank] == plan_.role_of[ranks.front()]; });
      for (Rank member = 0; member < ranks.size(); ++member) seats[ranks[member]] = {group, member, alike};
    }
    return seats;
  }

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
  std::vector<std::vector<Seat>> seats_;  // of families, of ranks
  std::map<std::pair<const Schedule*, Rank>, Seconds> known_;
};

}  // namespace

PlanWalk least_walk(const Plan& plan, sim::Cluster& cluster) {
  OwnTransfers transfers(plan, cluster);
  return first_step(plan, [&](const PlanTask& task, Rank rank) { return transfers.of(task, rank); });
}

}  // namespace hcclsim::hccl
