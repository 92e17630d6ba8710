#include "hccl/training/plan_links.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

class PlanLinks {
 public:
  PlanLinks(sim::Cluster& cluster, sim::CpuHosts* cpus, const Plan& plan, const RankOrbits* orbits, Rank own)
      : cpus_(cpus), plan_(plan), orbits_(orbits), own_(own), links_(cluster) {}

  PrivateLinks find() && {
    for (std::uint32_t role = 0; role < plan_.roles.size(); ++role) add_tasks(role);
    for (const auto& [family, calls] : calls_) add_family(family, calls);
    for (Rank rank = 0; rank < plan_.ranks(); ++rank) {
      if (orbits_ != nullptr && !orbits_->represents(rank)) continue;
      add_messages(rank);
      add_copies(rank);
    }
    return std::move(links_);
  }

 private:
  /// A schedule that groups carry out in a stream, in place of all that go the same ways.
  struct Call {
    std::uint32_t collective = 0;
    std::uint32_t stream = 0;
  };
  /// Message, offset, stream, and whether it is sent.
  using Message = std::tuple<std::uint32_t, std::int64_t, std::uint32_t, bool>;

  void add_tasks(std::uint32_t role) {
    std::set<Message>& messages = messages_.emplace_back();
    std::set<std::pair<std::uint32_t, bool>>& copies = copies_.emplace_back();
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (const PlanTask& task : plan_.roles[role].tasks) {
      if (const auto* send = std::get_if<SendTask>(&task.work)) {
        messages.emplace(send->message, send->offset, task.stream, true);
      } else if (const auto* receive = std::get_if<ReceiveTask>(&task.work)) {
        messages.emplace(receive->message, receive->offset, task.stream, false);
      } else if (const auto* work = std::get_if<CollectiveTask>(&task.work)) {
        if (seen.emplace(work->collective, task.stream).second) add_call({work->collective, task.stream});
      } else if (const auto* copy = std::get_if<HostCopy>(&task.work)) {
        copies.emplace(task.stream, copy->back);
      }
    }
  }

  void add_call(const Call& call) {
    const PlannedCollective& collective = plan_.collectives[call.collective];
    std::vector<Call>& calls = calls_[collective.family];
    const auto goes_the_same_ways = [&](const Call& other) {
      return other.stream == call.stream &&
             std::ranges::equal(plan_.collectives[other.collective].schedules, collective.schedules,
                                [](const auto& one, const auto& another) { return same_ways(*one, *another); });
    };
    if (std::ranges::none_of(calls, goes_the_same_ways)) calls.push_back(call);
  }

  void add_family(std::uint32_t family, const std::vector<Call>& calls) {
    const std::vector<Communicator>& groups = plan_.families[family].groups;
    const auto add = [&](std::uint32_t group, const Seats& seats) {
      for (const Call& call : calls) {
        links_.add(groups[group], seats, *plan_.collectives[call.collective].schedules[group], call.stream);
      }
    };
    if (orbits_ == nullptr) {
      for (std::uint32_t group = 0; group < groups.size(); ++group) add(group, Seats::all(groups[group]));
      return;
    }
    std::vector<const Communicator*> pointers;
    for (const Communicator& group : groups) pointers.push_back(&group);
    for (const auto& [group, seats] : orbits_->fold(pointers, own_)) add(group, seats);
  }

  /// Each end of a message does its own tasks.
  void add_messages(Rank rank) {
    for (const auto& [message, offset, stream, is_sent] : messages_[plan_.role_of[rank]]) {
      const auto peer = static_cast<Rank>(std::int64_t{rank} + offset);
      const Communicator ends{"", is_sent ? std::vector<Rank>{rank, peer} : std::vector<Rank>{peer, rank}};
      const Seats seats{.members = {is_sent ? Rank{0} : Rank{1}}, .npus = {rank}, .place_of = {}};
      links_.add(ends, seats, *plan_.messages[message].schedule, stream);
    }
  }

  void add_copies(Rank rank) {
    if (cpus_ == nullptr) return;
    for (const auto& [stream, back] : copies_[plan_.role_of[rank]]) {
      const sim::Route* const way = back ? cpus_->way_from(rank) : cpus_->way_to(rank);
      if (way != nullptr) links_.add(*way, rank, stream);
    }
  }

  sim::CpuHosts* cpus_;
  const Plan& plan_;
  const RankOrbits* orbits_;
  Rank own_;
  PrivateLinks links_;
  std::map<std::uint32_t, std::vector<Call>> calls_;              // by family
  std::vector<std::set<Message>> messages_;                       // by role
  std::vector<std::set<std::pair<std::uint32_t, bool>>> copies_;  // by role: streams, and whether it is to the host
};

}  // namespace

PrivateLinks private_links_of(sim::Cluster& cluster, sim::CpuHosts* cpus, const Plan& plan, const RankOrbits* orbits,
                              Rank own) {
  return PlanLinks(cluster, cpus, plan, orbits, own).find();
}

}  // namespace hcclsim::hccl
