#include "study/platform/link_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "hccl/runtime/fold/folded_cluster.hpp"
#include "study/platform/link_sources.hpp"

namespace hcclsim::study {
namespace {

/// NPUs in a few words.
std::string place_of(const sim::Cluster& cluster, const std::set<Rank>& npus) {
  if (npus.empty()) internal_error("a link that carried something is on nobody's way");
  if (npus.size() == 1) return fmt::format("NPU {}", *npus.begin());
  const std::uint32_t server = cluster.npu(*npus.begin()).server;
  const bool one_server = std::ranges::all_of(npus, [&](Rank npu) { return cluster.npu(npu).server == server; });
  return one_server && cluster.servers() > 1 ? fmt::format("{} NPUs of server {}", npus.size(), server)
                                             : fmt::format("{} NPUs", npus.size());
}

struct Ends {
  std::set<Rank> sources;
  std::set<Rank> destinations;
};

/// Whose bytes these links carried. Images of the flows that were simulated have their own ways.
std::map<sim::LinkId, Ends> ends_of(sim::Cluster& cluster, std::span<const sim::Flow> flows,
                                    const std::optional<hccl::RankOrbits>& orbits,
                                    const std::vector<sim::LinkUtilisation::OfLink>& links) {
  std::map<sim::LinkId, Ends> ends;
  for (const sim::LinkUtilisation::OfLink& link : links) ends.try_emplace(link.link);
  const auto add = [&](Rank source, Rank destination) {
    for (const sim::LinkId link : cluster.route(source, destination).links) {
      const auto found = ends.find(link);
      if (found == ends.end()) continue;
      found->second.sources.insert(source);
      found->second.destinations.insert(destination);
    }
  };
  std::set<std::pair<Rank, Rank>> pairs;
  for (const sim::Flow& flow : flows) {
    if (!flow.counts || !pairs.emplace(flow.source, flow.destination).second) continue;
    if (orbits.has_value()) {
      orbits->for_each_image(flow.source, flow.destination, add);
    } else {
      add(flow.source, flow.destination);
    }
  }
  return ends;
}

/// Owners of one purpose and stage are one share.
std::vector<LinkReport::Share> shares_of(const sim::LinkUtilisation::OfLink& link, const LinkQuestion& question) {
  std::map<std::pair<std::string, std::optional<std::uint32_t>>, Bytes> sums;
  for (const auto& [owner, bytes] : link.shares) {
    const LinkReport::Share share = question.share_of(owner);
    sums[{share.purpose, share.stage}] += bytes;
  }
  std::vector<LinkReport::Share> shares;
  for (const auto& [share, bytes] : sums) shares.push_back({share.first, share.second, bytes});
  std::ranges::stable_sort(shares, std::greater<>(), &LinkReport::Share::bytes);
  return shares;
}

/// Number of the collective or message that a task carries out; messages come behind the collectives.
std::uint64_t communication_of(const hccl::Plan& plan, const hccl::PlanTask& task) {
  if (const auto* collective = std::get_if<hccl::CollectiveTask>(&task.work)) return collective->collective;
  if (const auto* send = std::get_if<hccl::SendTask>(&task.work)) return plan.collectives.size() + send->message;
  if (const auto* receive = std::get_if<hccl::ReceiveTask>(&task.work)) {
    return plan.collectives.size() + receive->message;
  }
  internal_error("a task that communicates with nobody has moved bytes");
}

}  // namespace

LinkReport link_report(sim::Cluster& cluster, std::span<const sim::Flow> flows,
                       const std::optional<hccl::RankOrbits>& orbits, const LinkQuestion& question) {
  sim::LinkUtilisation found;
  {
    const hccl::FoldedCluster folded(cluster, orbits.has_value() ? &orbits->links() : nullptr);
    found = sim::link_utilisation(cluster, flows, question.intervals, question.most_links, question.owner_of,
                                  question.faults);
  }
  LinkReport report{.time = question.intervals.to - question.intervals.from,
                    .intervals = question.intervals.count,
                    .links_used = found.links_used,
                    .kinds = {},
                    .links = {}};
  for (sim::LinkUtilisation::OfKind& one : found.kinds) {
    report.kinds.push_back({.kind = std::string(title_of(one.kind)),
                            .links = one.links,
                            .bytes = one.bytes,
                            .busiest = cluster.links()[one.link].name,
                            .capacity = cluster.capacity(one.link),
                            .utilisation = one.utilisation,
                            .most_loads = std::move(one.busiest),
                            .mean_loads = std::move(one.mean)});
  }
  const std::map<sim::LinkId, Ends> ends = ends_of(cluster, flows, orbits, found.links);
  for (sim::LinkUtilisation::OfLink& one : found.links) {
    const sim::Link& link = cluster.links()[one.link];
    report.links.push_back({.name = link.name,
                            .kind = std::string(title_of(link.kind)),
                            .from = place_of(cluster, ends.at(one.link).sources),
                            .to = place_of(cluster, ends.at(one.link).destinations),
                            .capacity = cluster.capacity(one.link),
                            .shared = link.shared,
                            .bytes = one.bytes,
                            .busy = one.busy,
                            .utilisation = one.utilisation,
                            .utilisation_while_busy = one.while_busy,
                            .most_transfers = one.most_flows,
                            .shares = shares_of(one, question),
                            .loads = std::move(one.load)});
  }
  return report;
}

void ask_for_shares(LinkQuestion& question, const hccl::Plan& plan) {
  question.owner_of = [&plan](const sim::Flow& flow) {
    const hccl::PlanTask& task = plan.role(flow.rank()).tasks.at(flow.task);
    return std::uint64_t{plan.role(flow.source).stage} << 32U | communication_of(plan, task);
  };
  question.share_of = [&plan](std::uint64_t owner) -> LinkReport::Share {
    const auto stage = static_cast<std::uint32_t>(owner >> 32U);
    const std::uint64_t number = owner & 0xffffffffU;
    const std::size_t collectives = plan.collectives.size();
    return {number < collectives ? plan.collectives[number].name : plan.messages[number - collectives].name, stage, 0};
  };
}

LinkReport link_report(sim::Cluster& cluster, const hccl::SimulatedCollectives& simulated,
                       const std::vector<hccl::CollectiveCall>& calls, std::size_t most_links,
                       const sim::FaultPlan* faults) {
  sim::Intervals time{.from = simulated.calls.front().start, .to = simulated.calls.front().end, .count = 1};
  for (const hccl::CollectiveTime& call : simulated.calls) {
    time.from = std::min(time.from, call.start);
    time.to = std::max(time.to, call.end);
  }
  const LinkQuestion question{.intervals = time,
                              .most_links = most_links,
                              .owner_of = [](const sim::Flow& flow) { return std::uint64_t{flow.task}; },
                              .share_of = [&calls](std::uint64_t owner) -> LinkReport::Share {
                                return {calls.at(owner).name, std::nullopt, 0};
                              },
                              .faults = faults};
  return link_report(cluster, simulated.flows, simulated.orbits, question);
}

}  // namespace hcclsim::study
