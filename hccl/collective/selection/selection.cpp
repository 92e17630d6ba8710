#include "hccl/collective/selection/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/selection/between_servers.hpp"
#include "hccl/collective/staging.hpp"

namespace hcclsim::hccl {
namespace {

/// Up to this payload of an allreduce a 910B reads everybody's whole payload at once.
constexpr Bytes one_shot_limit_graph = 64 * 1024;
constexpr Bytes one_shot_limit_op = 256 * 1024;
/// Up to this payload of an allreduce in op mode a 910A takes halving-doubling among 4 or 8 ranks.
constexpr Bytes halving_limit_910a_op = 1024 * 1024;

bool has_four_rings(const Topology& topology, const device::Soc& soc) {
  return soc.generation == device::Generation::a1 && topology.ranks_per_server == 8 && topology.whole_servers;
}

bool can_be_hierarchical(const Topology& topology) { return topology.servers >= 2 && topology.ranks_per_server != 0; }

/// Servers, and all of them.
std::vector<HierarchyLevel> two_levels(const Topology& topology) {
  if (topology.ranks_per_server == 0) return {};
  return {{.size = topology.ranks_per_server}, {.size = topology.servers}};
}

/// Whether HCCL_ALGO says AHC, which also works for groups that differ in their numbers of ranks.
bool asks_for_ahc(Collective collective, const HcclConfig& config) {
  return asked_levels(collective, config).between_servers == LevelAlgorithm::ahc;
}

/// HCCL's algorithm in a server, without regard to the size.
LevelChoice in_server(const Topology& topology, Rank ranks, const device::Soc& soc) {
  switch (soc.generation) {
    case device::Generation::a1:
      if (has_four_rings(topology, soc)) {
        return {Algorithm::multi_ring, "HCCL's four rings use all links of a whole server of eight 910A"};
      }
      if (ranks == 4) return {Algorithm::mesh, "HCCL takes the mesh for four 910A"};
      return {Algorithm::ring, fmt::format("HCCL takes one ring for {} 910A of a server", ranks)};
    case device::Generation::a2:
      return {Algorithm::mesh, "HCCL takes the mesh in an A2 server"};
    case device::Generation::a3:
      if (ranks > 2) return {Algorithm::multi_ring, "HCCL takes the double ring on A3"};
      return {Algorithm::ring, "two dies are a ring"};
  }
  internal_error("unknown generation {}", static_cast<int>(soc.generation));
}

Selection allreduce_in_server(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc) {
  const bool op = request.launch == LaunchMode::op;
  const Rank ranks = topology.ranks;
  const Bytes payload = request.operation.payload();
  if (soc.generation == device::Generation::a1 && op && payload <= halving_limit_910a_op &&
      (ranks == 4 || ranks == 8)) {
    return {.algorithm = Algorithm::halving_doubling,
            .rule = fmt::format("up to {} bytes HCCL takes halving-doubling for {} 910A in op mode",
                                halving_limit_910a_op, ranks)};
  }
  if (soc.generation == device::Generation::a2) {
    const Bytes limit = op ? one_shot_limit_op : one_shot_limit_graph;
    if (payload <= limit) {
      return {.algorithm = Algorithm::mesh_one_shot,
              .rule = fmt::format("up to {} bytes HCCL on A2 reads everything at once in {} mode", limit,
                                  name_of(request.launch))};
    }
    return {.algorithm = Algorithm::mesh_two_shot,
            .rule = fmt::format("beyond {} bytes HCCL on A2 takes the mesh in two shots in {} mode", limit,
                                name_of(request.launch))};
  }
  LevelChoice choice = in_server(topology, ranks, soc);
  return {.algorithm = choice.algorithm == Algorithm::mesh ? Algorithm::mesh_two_shot : choice.algorithm,
          .rule = std::move(choice.rule)};
}

/// HCCL's two levels, and the algorithms in each.
Selection alltoall_in_levels(const Topology& topology, const device::Soc& soc, std::string rule) {
  const bool linked = soc.generation != device::Generation::a1;
  return {.algorithm = Algorithm::hierarchical,
          .rule = std::move(rule),
          .levels = {{.size = topology.ranks_per_server, .algorithm = linked ? Algorithm::mesh : Algorithm::pairwise},
                     {.size = topology.servers, .algorithm = Algorithm::pairwise}}};
}

bool blocks_differ(const Operation& operation) {
  const std::vector<std::uint64_t>& counts = operation.counts.counts();
  return std::any_of(counts.begin(), counts.end(), [&](std::uint64_t count) { return count != counts.front(); });
}

Selection alltoall_of(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc) {
  if (topology.servers == 1 && soc.generation != device::Generation::a1) {
    return {.algorithm = Algorithm::mesh, .rule = "all pairs of the server have links"};
  }
  const auto pairwise = [](std::string rule) {
    return Selection{.algorithm = Algorithm::pairwise, .rule = std::move(rule)};
  };
  const LevelAlgorithm setting = asked_levels(Collective::alltoall, request.config).between_servers;
  if (topology.servers > 1 && setting != LevelAlgorithm::automatic) {
    return pairwise(asked_for(Collective::alltoall, setting, 1).rule);
  }
  const bool alike = topology.ranks_per_server > 1;
  if (topology.servers == 1 || !alike || soc.generation == device::Generation::a3) {
    return pairwise("one partner at a time where pairs share links");
  }
  if (blocks_differ(request.operation)) {
    return pairwise("one partner at a time: blocks differ, of which two levels are not simulated");
  }
  return alltoall_in_levels(topology, soc, "HCCL exchanges in the servers, then between them");
}

Selection choose_in_server(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc) {
  if (request.operation.collective == Collective::allreduce) return allreduce_in_server(request, topology, soc);
  auto [algorithm, rule] = in_server(topology, topology.ranks, soc);
  if (!has_algorithm(request.operation.collective, algorithm)) {
    return {
        .algorithm = Algorithm::ring,
        .rule = fmt::format("{} is not simulated for {}", name_of(algorithm), name_of(request.operation.collective))};
  }
  return {.algorithm = algorithm, .rule = std::move(rule)};
}

/// Of an error message: "1 server", "2 servers".
std::string server_count(const Topology& topology) {
  return fmt::format("{} server{}", topology.servers, topology.servers == 1 ? "" : "s");
}

/// Of the rule: the levels with their sizes.
std::string levels_rule(const Topology& topology, const std::vector<HierarchyLevel>& levels) {
  if (topology.super_pods.empty()) {
    return fmt::format("{} servers with {} NPUs each make two levels", topology.servers, topology.ranks_per_server);
  }
  const Rank together = topology.servers_per_pod();
  const bool uneven = std::any_of(topology.super_pods.begin(), topology.super_pods.end(),
                                  [&](Rank servers) { return servers != together; });
  const std::string pods = uneven
                               ? fmt::format("{} super-pods of {} servers, in groups of {}", topology.super_pods.size(),
                                             fmt::join(topology.super_pods, ", "), together)
                               : fmt::format("{} super-pods of {}", topology.super_pods.size(),
                                             together == 1 ? "a server" : fmt::format("{} servers", together));
  return fmt::format("{} with {} NPUs each make {} levels", pods, topology.ranks_per_server,
                     levels.size() == 2 ? "two" : "three");
}

/// Selects an algorithm that spans all levels, chosen by HCCL_ALGO or by HCCL.
Selection choose_over_levels(const CollectiveRequest& request, const Topology& topology, LevelChoice choice) {
  if (request.algorithm != Algorithm::automatic) {
    bad_input("collective", "{} was asked for, but {}; say one of the two", name_of(request.algorithm), choice.rule);
  }
  return {.algorithm = choice.algorithm, .rule = std::move(choice.rule), .levels = two_levels(topology)};
}

Selection choose_in_levels(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc) {
  const Collective collective = request.operation.collective;
  const bool has_between_servers =
      topology.super_pods.empty() || topology.servers_per_pod() > 1 || asks_for_ahc(collective, request.config);
  std::vector<HierarchyLevel> levels{
      {.size = topology.ranks_per_server, .algorithm = in_server(topology, topology.ranks_per_server, soc).algorithm}};
  std::string rule;
  if (has_between_servers) {
    LevelChoice between_servers = choose_between_servers(request.operation, request.launch, request.config, topology,
                                                         soc, request.algorithm == Algorithm::hierarchical);
    if (spans_levels(between_servers.algorithm))
      return choose_over_levels(request, topology, std::move(between_servers));
    levels.push_back({.size = topology.servers_per_pod(), .algorithm = between_servers.algorithm});
    rule += fmt::format("; {} between servers: {}", name_of(between_servers.algorithm), between_servers.rule);
  }
  if (!topology.super_pods.empty()) {
    const Rank groups = topology.servers / topology.servers_per_pod();
    const LevelChoice between_super_pods = choose_between_super_pods(collective, request.config, groups);
    levels.push_back({.size = groups, .algorithm = between_super_pods.algorithm});
    rule += fmt::format("; {} between super-pods: {}", name_of(between_super_pods.algorithm), between_super_pods.rule);
  }
  rule = (request.algorithm == Algorithm::automatic ? levels_rule(topology, levels) : "it was asked for") + rule;
  return {.algorithm = Algorithm::hierarchical, .rule = std::move(rule), .levels = std::move(levels)};
}

Selection choose(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc) {
  switch (request.operation.collective) {
    case Collective::alltoall:
      return alltoall_of(request, topology, soc);
    case Collective::gather:
      return {.algorithm = Algorithm::star, .rule = "all ranks have the root alone to talk to"};
    case Collective::send_recv:
      return {.algorithm = Algorithm::direct, .rule = "sends and receives have no choice"};
    case Collective::barrier:
      return {.algorithm = Algorithm::direct, .rule = "a barrier has no choice"};
    default:
      break;
  }
  if (topology.servers == 1) return choose_in_server(request, topology, soc);
  const bool uneven = !topology.uneven_servers.empty();
  if (topology.ranks_per_server > 0 || (uneven && asks_for_ahc(request.operation.collective, request.config))) {
    return choose_in_levels(request, topology, soc);
  }
  return {.algorithm = Algorithm::ring,
          .rule = "the servers' numbers of NPUs differ, or ranks are not numbered server by server"};
}

/// Orders of the ranks of a server for its several rings; none where HCCL has one ring.
std::vector<std::vector<Rank>> rings_of_server(const Topology& topology, const device::Soc& soc) {
  if (has_four_rings(topology, soc)) return four_rings_of_910a();
  if (soc.generation == device::Generation::a3) return double_ring(topology.ranks_per_server);
  return {};
}

std::vector<std::vector<Rank>> rings_of_all(const Topology& topology, const device::Soc& soc) {
  if (topology.servers == 1) {
    std::vector<std::vector<Rank>> rings = rings_of_server(topology, soc);
    if (!rings.empty()) return rings;
  }
  bad_input("collective",
            "multi-ring needs one whole server of eight 910A (four rings) or one server of A3 dies (double ring); here "
            "are {} NPUs {} on {}; use {}",
            topology.ranks, soc.name, server_count(topology),
            can_be_hierarchical(topology) ? "ring or hierarchical" : "ring");
}

/// Levels with rings, and inline reduction by the links that each of them uses.
template <typename Inlined>
std::vector<HierarchyLevel> filled_in(std::vector<HierarchyLevel> levels, const Topology& topology,
                                      const device::Soc& soc, const Inlined& inlined) {
  Rank span = 1;
  for (HierarchyLevel& level : levels) {
    const bool whole_server = span == 1 && level.size == topology.ranks_per_server && has_four_rings(topology, soc);
    if (level.algorithm == Algorithm::multi_ring) {
      level.rings = whole_server ? four_rings_of_910a() : double_ring(level.size);
    }
    span *= level.size;
    level.inline_reduce = inlined(topology.extent_of(span));
  }
  return levels;
}

AlgorithmSetting setting_of(const Selection& selection, const CollectiveRequest& request, const Topology& topology,
                            const device::Soc& soc) {
  const Operation& operation = request.operation;
  const Bytes alignment = alignment_of_blocks(operation);
  const auto inlined = [&](Extent extent) {
    return device::inline_reduce(soc, operation.type, operation.op, alignment, topology.transport_over(extent));
  };
  const bool in_server = inlined(Extent::server);
  const bool in_pod = in_server && (topology.servers == 1 || inlined(Extent::super_pod));
  const bool between_pods = inlined(Extent::cluster);
  AlgorithmSetting setting;
  setting.inline_reduce = in_pod && (topology.super_pods.empty() || between_pods);
  setting.groups = topology.super_pods.empty()
                       ? UnevenGroups{topology.server_sizes(), in_server, inlined(Extent::super_pod)}
                       : UnevenGroups{topology.super_pod_sizes(), in_pod, between_pods};
  if (selection.algorithm == Algorithm::multi_ring) setting.rings = rings_of_all(topology, soc);
  setting.levels = filled_in(selection.levels, topology, soc, inlined);
  return setting;
}

Selection as_asked_for(const CollectiveRequest& request, const Topology& topology) {
  std::uint64_t ranks = 1;
  for (const HierarchyLevel& level : request.levels) ranks = std::min<std::uint64_t>(ranks * level.size, 1U << 30U);
  if (ranks != topology.ranks) {
    bad_input("collective", "the sizes of the levels make {} ranks; there are {}", ranks, topology.ranks);
  }
  const Algorithm algorithm = request.algorithm;
  if (algorithm != Algorithm::automatic && algorithm != Algorithm::hierarchical) {
    bad_input("collective", "levels are those of hierarchical; {} was asked for", name_of(algorithm));
  }
  return {.algorithm = Algorithm::hierarchical, .rule = "its levels were asked for", .levels = request.levels};
}

/// For an error message: algorithms of the collective that need few streams and notifies.
std::string frugal_algorithms(Collective collective, const Topology& topology) {
  std::vector<std::string_view> names;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::pairwise, Algorithm::hierarchical}) {
    if (algorithm == Algorithm::hierarchical && !can_be_hierarchical(topology)) continue;
    if (has_algorithm(collective, algorithm)) names.push_back(name_of(algorithm));
  }
  return names.empty() ? "fewer NPUs" : fmt::to_string(fmt::join(names, " or "));
}

/// Every queue is a stream and every slot a notify of the device; both are limited.
void require_resources(const Schedule& schedule, const Topology& topology, const device::Soc& soc) {
  if (schedule.queues <= soc.streams && schedule.notifies <= soc.notifies) return;
  bad_input("collective", "{} among {} NPUs needs {} streams and {} notifies on each, {} has {} and {}; use {}",
            schedule.algorithm, schedule.ranks, schedule.queues, schedule.notifies, soc.name, soc.streams, soc.notifies,
            frugal_algorithms(schedule.collective, topology));
}

}  // namespace

Selection select(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc) {
  if (!request.levels.empty()) return as_asked_for(request, topology);
  if (request.algorithm == Algorithm::automatic) return choose(request, topology, soc);
  const bool in_levels = request.algorithm == Algorithm::hierarchical || request.algorithm == Algorithm::pipeline;
  if (in_levels && !can_be_hierarchical(topology)) {
    bad_input("collective",
              "{} needs several servers with the same number of NPUs, numbered server by server; here are "
              "{} NPUs on {}; use ring",
              name_of(request.algorithm), topology.ranks, server_count(topology));
  }
  if (request.algorithm == Algorithm::ahc && topology.server_sizes().empty()) {
    bad_input("collective", "ahc needs ranks numbered server by server; here {} NPUs on {} are not; use ring",
              topology.ranks, server_count(topology));
  }
  if (request.algorithm != Algorithm::hierarchical) {
    return {.algorithm = request.algorithm, .rule = "it was asked for", .levels = two_levels(topology)};
  }
  if (request.operation.collective == Collective::alltoall) {
    return alltoall_in_levels(topology, soc, "it was asked for");
  }
  return choose_in_levels(request, topology, soc);
}

std::shared_ptr<const Schedule> make_collective(const CollectiveRequest& request, const Topology& topology,
                                                const device::Soc& soc) {
  const Selection selection = select(request, topology, soc);
  const AlgorithmSetting setting = setting_of(selection, request, topology, soc);
  const Staging staging{request.zero_copy ? LaunchMode::graph : request.launch, request.config.buffer_bytes};
  Schedule schedule = staged(request.operation, staging, [&](const Operation& operation) {
    return build_algorithm(selection.algorithm, operation, setting);
  });
  require_resources(schedule, topology, soc);
  return std::make_shared<const Schedule>(std::move(schedule));
}

}  // namespace hcclsim::hccl
