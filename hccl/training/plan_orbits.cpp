#include "hccl/training/plan_orbits.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <variant>
#include <vector>

namespace hcclsim::hccl {
namespace {

/// Ranks of one kind run one program, start together and are equally fast, and nothing happens to them; the messages of
/// each kind.
void add_kinds(const Plan& plan, const device::Skew& skew, Coupling& coupling) {
  std::vector<std::vector<std::int64_t>> of_role;
  for (const Role& role : plan.roles) {
    std::set<std::int64_t> offsets;
    for (const PlanTask& task : role.tasks) {
      const auto* send = std::get_if<SendTask>(&task.work);
      if (send != nullptr) offsets.insert(send->offset);
    }
    of_role.emplace_back(offsets.begin(), offsets.end());
  }
  constexpr Rank all_alike = ~Rank{0};
  std::map<std::tuple<std::uint32_t, Seconds, double, Rank>, std::uint32_t> kinds;
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    const auto number = static_cast<std::uint32_t>(kinds.size());
    const Rank apart = coupling.faults != nullptr && coupling.faults->touches_npu(rank) ? rank : all_alike;
    const auto [kind, is_new] =
        kinds.try_emplace({plan.role_of[rank], skew.start(rank), skew.speed(rank), apart}, number);
    if (is_new) coupling.offsets.push_back(of_role[plan.role_of[rank]]);
    coupling.kinds.push_back(kind->second);
  }
}

}  // namespace

std::optional<RankOrbits> find_orbits(sim::Cluster& cluster, const Plan& plan, const device::Skew& skew,
                                      const sim::FaultPlan* faults, std::span<const Rank> preferred) {
  if (skew.jitters()) return {};
  Coupling coupling{.kinds = {}, .offsets = {}, .faults = faults};
  add_kinds(plan, skew, coupling);
  for (const GroupFamily& family : plan.families) {
    Coupling::Family& own = coupling.families.emplace_back();
    for (const Communicator& group : family.groups) own.groups.push_back(&group);
    own.schedules.resize(own.groups.size());
  }
  for (const PlannedCollective& collective : plan.collectives) {
    std::vector<std::vector<const Schedule*>>& schedules = coupling.families[collective.family].schedules;
    for (std::size_t group = 0; group < schedules.size(); ++group) {
      schedules[group].push_back(collective.schedules[group].get());
    }
  }
  return RankOrbits::find(cluster, coupling, preferred);
}

}  // namespace hcclsim::hccl
