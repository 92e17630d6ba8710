#include "hccl/training/plan_orbits.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <variant>
#include <vector>

namespace hcclsim::hccl {
namespace {

/// Ranks of one kind run one program, start together and are equally fast, their data workers too, and nothing happens
/// to them; the messages of each kind.
void add_kinds(const Plan& plan, const RankTraits& traits, Coupling& coupling) {
  std::vector<std::vector<std::int64_t>> of_role;
  for (const Role& role : plan.roles) {
    std::set<std::int64_t> offsets;
    for (const PlanTask& task : role.tasks) {
      const auto* send = std::get_if<SendTask>(&task.work);
      if (send != nullptr) offsets.insert(send->offset);
    }
    of_role.emplace_back(offsets.begin(), offsets.end());
  }
  const device::Skew& skew = traits.skew;
  constexpr Rank all_alike = ~Rank{0};
  std::map<std::tuple<std::uint32_t, Seconds, double, double, Rank>, std::uint32_t> kinds;
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    const auto number = static_cast<std::uint32_t>(kinds.size());
    const double samples = traits.samples_per_second.empty() ? 0 : traits.samples_per_second[rank];
    const Rank apart = traits.faults != nullptr && traits.faults->touches_npu(rank) ? rank : all_alike;
    const auto [kind, is_new] =
        kinds.try_emplace({plan.role_of[rank], skew.start(rank), skew.speed(rank), samples, apart}, number);
    if (is_new) coupling.offsets.push_back(of_role[plan.role_of[rank]]);
    coupling.kinds.push_back(kind->second);
  }
}

void add_copies(sim::CpuHosts& cpus, const Plan& plan, Coupling& coupling) {
  std::vector<bool> copies;
  for (const Role& role : plan.roles) {
    copies.push_back(std::ranges::any_of(
        role.tasks, [](const PlanTask& task) { return std::holds_alternative<HostCopy>(task.work); }));
  }
  for (const std::uint32_t role : plan.role_of) {
    const auto rank = static_cast<Rank>(coupling.copies.size());
    coupling.copies.push_back(copies[role] ? cpus.way_to(rank) : nullptr);
  }
}

/// Only the ways from hosts are compared.
bool copies_to_hosts(const Plan& plan) {
  return std::ranges::any_of(plan.roles, [](const Role& role) {
    return std::ranges::any_of(role.tasks, [](const PlanTask& task) {
      const auto* copy = std::get_if<HostCopy>(&task.work);
      return copy != nullptr && copy->back;
    });
  });
}

std::vector<bool> touched_links(const RankTraits& traits) {
  std::vector<bool> touched = traits.used_by_others;
  if (traits.faults == nullptr) return touched;
  if (touched.empty()) return traits.faults->touched_links();
  for (sim::LinkId link = 0; link < touched.size(); ++link) {
    if (traits.faults->touches(link)) touched[link] = true;
  }
  return touched;
}

}  // namespace

std::optional<RankOrbits> find_orbits(sim::Cluster& cluster, sim::CpuHosts* cpus, const Plan& plan,
                                      const RankTraits& traits, std::span<const Rank> preferred) {
  if (traits.skew.jitters()) return {};
  if (cpus != nullptr && copies_to_hosts(plan)) return {};
  Coupling coupling{.kinds = {}, .offsets = {}, .touched = touched_links(traits)};
  add_kinds(plan, traits, coupling);
  if (cpus != nullptr) add_copies(*cpus, plan, coupling);
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
