#include "hccl/collective/selection.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "hccl/collective/formula.hpp"
#include "hccl/collective/halving_doubling.hpp"
#include "hccl/collective/hierarchical.hpp"
#include "hccl/collective/mesh.hpp"
#include "hccl/collective/ring.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 7> algorithm_names{
    "auto", "ring", "multi-ring", "mesh-one-shot", "mesh-two-shot", "halving-doubling", "hierarchical"};

/// Up to this payload a 910B reads everybody's whole payload at once in graph mode (HCCL, allreduce operator).
constexpr Bytes one_shot_limit_graph_mode = 64 * 1024;

/// HCCL compares algorithms between servers with this latency of a step and this bandwidth of RDMA (its constants,
/// coll_alg_operator and device_capacity: 25 GB/s · 0.8; the 910A generation does not compare).
constexpr Seconds selection_latency = 60 * microsecond;
constexpr BytesPerSecond selection_rdma_bandwidth = 20 * giga;

bool has_four_rings(const Topology& topology, const device::Soc& soc) {
  return soc.generation == device::Generation::a1 && topology.ranks_per_server == 8 && topology.whole_servers;
}

/// A choice and the rule behind it, for people.
template <typename Algorithm>
struct Choice {
  Algorithm algorithm;
  std::string rule;
};

Choice<OuterAlgorithm> choose_outer(const Topology& topology, const device::Soc& soc, Bytes slice) {
  const Rank servers = topology.servers;
  if (soc.generation == device::Generation::a1) {
    if (std::has_single_bit(servers)) {
      return {OuterAlgorithm::halving_doubling, fmt::format("{} servers are a power of two", servers)};
    }
    return {OuterAlgorithm::ring, fmt::format("{} servers are no power of two", servers)};
  }
  const auto estimate = [&](OuterAlgorithm algorithm) {
    const auto terms = formula_terms(name_of(algorithm), Collective::allreduce, servers, static_cast<double>(slice));
    return terms->steps * selection_latency + terms->bytes / selection_rdma_bandwidth;
  };
  const Seconds ring = estimate(OuterAlgorithm::ring);
  const Seconds halving = estimate(OuterAlgorithm::halving_doubling);
  return {ring <= halving ? OuterAlgorithm::ring : OuterAlgorithm::halving_doubling,
          fmt::format("HCCL estimates, with 60 us a step and 20 GB/s for slices of {} bytes, ring {:.1f} us and "
                      "halving-doubling {:.1f} us; ring wins ties",
                      slice, ring / microsecond, halving / microsecond)};
}

/// The algorithm between servers that HCCL_ALGO names, or HCCL's choice.
Choice<OuterAlgorithm> outer_algorithm(const HcclConfig& config, const Topology& topology, const device::Soc& soc,
                                       Bytes slice) {
  const LevelAlgorithm level1 = config.algo.of(AlgoOperator::allreduce).level1;
  const auto asked_for = [&](OuterAlgorithm algorithm) -> Choice<OuterAlgorithm> {
    return {algorithm, fmt::format("HCCL_ALGO says level1:{}", name_of(level1))};
  };
  switch (level1) {
    case LevelAlgorithm::automatic:
      return choose_outer(topology, soc, slice);
    case LevelAlgorithm::ring:
      return asked_for(OuterAlgorithm::ring);
    case LevelAlgorithm::halving_doubling:
      return asked_for(OuterAlgorithm::halving_doubling);
    default:
      bad_input("allreduce", "HCCL_ALGO level1:{} is not simulated for allreduce; use ring or H-D_R", name_of(level1));
  }
}

Choice<OuterAlgorithm> outer_of(const AllReduceRequest& request, const Topology& topology, const device::Soc& soc) {
  const Bytes payload = request.elements * size_of(request.type);
  return outer_algorithm(request.config, topology, soc, payload / topology.ranks_per_server);
}

HierarchicalOptions hierarchical_options(const AllReduceRequest& request, const Topology& topology,
                                         const device::Soc& soc) {
  HierarchicalOptions options{.ranks_per_server = topology.ranks_per_server, .orders = {}};
  if (has_four_rings(topology, soc)) {
    options.inner = InnerAlgorithm::multi_ring;
    options.orders = four_rings_of_910a();
  } else if (soc.generation == device::Generation::a3 && topology.ranks_per_server > 2) {
    options.inner = InnerAlgorithm::multi_ring;
    options.orders = double_ring(topology.ranks_per_server);
  } else if (soc.generation == device::Generation::a2 || topology.ranks_per_server == 4) {
    options.inner = InnerAlgorithm::mesh;
  }
  options.outer = outer_of(request, topology, soc).algorithm;
  return options;
}

Choice<AllReduceAlgorithm> choose_in_server(const Topology& topology, const device::Soc& soc, Bytes payload) {
  switch (soc.generation) {
    case device::Generation::a1:
      if (has_four_rings(topology, soc)) {
        return {AllReduceAlgorithm::multi_ring, "HCCL's four rings use all links of a whole server of eight 910A"};
      }
      if (topology.ranks == 4) return {AllReduceAlgorithm::mesh_two_shot, "HCCL takes the mesh for four 910A"};
      return {AllReduceAlgorithm::ring, fmt::format("HCCL takes one ring for {} 910A of a server", topology.ranks)};
    case device::Generation::a2:
      if (payload <= one_shot_limit_graph_mode) {
        return {AllReduceAlgorithm::mesh_one_shot,
                fmt::format("up to {} bytes HCCL on A2 reads everything at once", one_shot_limit_graph_mode)};
      }
      return {AllReduceAlgorithm::mesh_two_shot,
              fmt::format("beyond {} bytes HCCL on A2 takes the mesh in two shots", one_shot_limit_graph_mode)};
    case device::Generation::a3:
      if (topology.ranks > 2) return {AllReduceAlgorithm::multi_ring, "HCCL takes the double ring on A3"};
      return {AllReduceAlgorithm::ring, "two dies are a ring"};
  }
  internal_error("unknown generation {}", static_cast<int>(soc.generation));
}

/// The algorithm that was asked for, or HCCL's.
Choice<AllReduceAlgorithm> choose(const AllReduceRequest& request, const Topology& topology, const device::Soc& soc) {
  if (request.algorithm != AllReduceAlgorithm::automatic) return {request.algorithm, "it was asked for"};
  if (topology.servers == 1) return choose_in_server(topology, soc, request.elements * size_of(request.type));
  if (topology.ranks_per_server > 0) {
    return {AllReduceAlgorithm::hierarchical,
            fmt::format("{} servers with {} NPUs each make two levels", topology.servers, topology.ranks_per_server)};
  }
  return {AllReduceAlgorithm::ring, "the servers' numbers of NPUs differ, or ranks are not numbered server by server"};
}

/// Of an error message: "1 server", "2 servers".
std::string server_count(const Topology& topology) {
  return fmt::format("{} server{}", topology.servers, topology.servers == 1 ? "" : "s");
}

bool can_be_hierarchical(const Topology& topology) { return topology.servers >= 2 && topology.ranks_per_server != 0; }

std::vector<std::vector<Rank>> ring_orders(const Topology& topology, const device::Soc& soc) {
  if (topology.servers == 1 && has_four_rings(topology, soc)) return four_rings_of_910a();
  if (topology.servers == 1 && soc.generation == device::Generation::a3) return double_ring(topology.ranks);
  bad_input("allreduce",
            "multi-ring needs one whole server of eight 910A (four rings) or one server of A3 dies (double ring); here "
            "are {} NPUs {} on {}; use {}",
            topology.ranks, soc.name, server_count(topology),
            can_be_hierarchical(topology) ? "ring or hierarchical" : "ring");
}

/// Every queue is a stream and every slot a notify of the device, of which there are only so many.
void require_resources(const Schedule& schedule, const device::Soc& soc) {
  if (schedule.queues <= soc.streams && schedule.notifies <= soc.notifies) return;
  bad_input("allreduce",
            "{} among {} NPUs needs {} streams and {} notifies on each, {} has {} and {}; use ring or hierarchical",
            schedule.algorithm, schedule.ranks, schedule.queues, schedule.notifies, soc.name, soc.streams,
            soc.notifies);
}

}  // namespace

std::string_view name_of(AllReduceAlgorithm algorithm) { return algorithm_names[static_cast<std::size_t>(algorithm)]; }

AllReduceAlgorithm parse_allreduce_algorithm(std::string_view name) {
  if (name == "mesh") return AllReduceAlgorithm::mesh_two_shot;
  if (name == "hd") return AllReduceAlgorithm::halving_doubling;
  std::string accepted;
  for (std::size_t i = 0; i < algorithm_names.size(); ++i) {
    if (algorithm_names[i] == name) return static_cast<AllReduceAlgorithm>(i);
    accepted += accepted.empty() ? "" : ", ";
    accepted += algorithm_names[i];
  }
  bad_input("option", "unknown allreduce algorithm '{}'; accepted: {}; mesh is mesh-two-shot, hd is halving-doubling",
            name, accepted);
}

std::shared_ptr<const Schedule> make_allreduce(const AllReduceRequest& request, const Topology& topology,
                                               const device::Soc& soc) {
  const Operation operation{topology.ranks, request.elements, request.type, request.op};
  const auto inlined = [&](sim::Transport transport) {
    return device::inline_reduce(soc, request.type, request.op, operation.alignment, transport);
  };
  // A flat algorithm crosses servers with the same tasks as it moves within them.
  const bool flat = inlined(topology.inside) && (topology.servers == 1 || inlined(topology.between));
  const auto share = [&soc](Schedule&& schedule) {
    require_resources(schedule, soc);
    return std::make_shared<const Schedule>(std::move(schedule));
  };
  switch (choose(request, topology, soc).algorithm) {
    case AllReduceAlgorithm::ring:
      return share(ring_allreduce(operation, flat));
    case AllReduceAlgorithm::multi_ring:
      return share(multi_ring_allreduce(operation, ring_orders(topology, soc), flat));
    case AllReduceAlgorithm::mesh_one_shot:
      return share(mesh_one_shot_allreduce(operation, flat));
    case AllReduceAlgorithm::mesh_two_shot:
      return share(mesh_two_shot_allreduce(operation, flat));
    case AllReduceAlgorithm::halving_doubling:
      return share(halving_doubling_allreduce(operation, flat));
    case AllReduceAlgorithm::hierarchical: {
      if (!can_be_hierarchical(topology)) {
        bad_input(
            "allreduce",
            "hierarchical needs several servers with the same number of NPUs, numbered server by server; here are "
            "{} NPUs on {}; use ring",
            topology.ranks, server_count(topology));
      }
      HierarchicalOptions options = hierarchical_options(request, topology, soc);
      options.inline_reduce_inner = inlined(topology.inside);
      options.inline_reduce_outer = inlined(topology.between);
      return share(hierarchical_allreduce(operation, options));
    }
    case AllReduceAlgorithm::automatic:
      break;
  }
  internal_error("no allreduce algorithm was chosen");
}

std::string allreduce_rule(const AllReduceRequest& request, const Topology& topology, const device::Soc& soc) {
  auto [algorithm, rule] = choose(request, topology, soc);
  if (algorithm != AllReduceAlgorithm::hierarchical || !can_be_hierarchical(topology)) return rule;
  const auto [outer, outer_rule] = outer_of(request, topology, soc);
  return fmt::format("{}; {} between servers: {}", rule, name_of(outer), outer_rule);
}

}  // namespace hcclsim::hccl
