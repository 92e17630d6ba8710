#include "hccl/collective/selection/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/selection/algo_level.hpp"

namespace hcclsim::hccl {
namespace {

/// Without what spans all levels.
LevelAlgorithm without_super_pods(LevelAlgorithm algorithm) {
  const bool spans = algorithm == LevelAlgorithm::ahc || algorithm == LevelAlgorithm::pipeline;
  return spans ? LevelAlgorithm::automatic : algorithm;
}

bool has_between_pods(Collective collective, LevelAlgorithm algorithm) {
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  return !op.has_value() || has_between_super_pods(device::Generation::a3, *op, algorithm);
}

/// The request for every algorithm of the collective, hierarchical with each that it has between servers.
std::vector<CollectiveRequest> requests_of_all(const CollectiveRequest& request, const Topology& topology) {
  const Collective collective = request.operation.collective;
  std::vector<CollectiveRequest> requests;
  for (const Algorithm algorithm : algorithms_of(collective)) {
    CollectiveRequest other = request;
    other.algorithm = algorithm;
    const bool has_outers = collective != Collective::alltoall && topology.servers > 1 && topology.ranks_per_server > 0;
    if (algorithm != Algorithm::hierarchical || !has_outers) {
      requests.push_back(other);
      continue;
    }
    // If super-pods are the outermost level, what was asked for between servers stays.
    const bool pods = !topology.super_pods.empty();
    for (const auto& [setting, outer] : named_levels) {
      if (!has_outer(collective, outer) || (pods && !has_between_pods(collective, setting))) continue;
      for (AlgoLevels& levels : other.config.algo.operators) {
        levels = pods ? AlgoLevels{.between_servers = without_super_pods(levels.between_servers),
                                   .between_super_pods = setting}
                      : AlgoLevels{.between_servers = setting};
      }
      requests.push_back(other);
    }
  }
  return requests;
}

Alternative alternative_of(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc,
                           const FormulaCosts& costs) {
  Alternative alternative;
  try {
    alternative.schedule = make_collective(request, topology, soc);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
    alternative.algorithm = name_of(request.algorithm);
    alternative.refused = error.what();
    return alternative;
  }
  alternative.algorithm = alternative.schedule->algorithm;
  const std::vector<HierarchyLevel> levels = select(request, topology, soc).levels;
  alternative.formula = formula_of_windows(*alternative.schedule, topology, soc, levels);
  if (alternative.formula.has_value()) alternative.formula_time = formula_time(*alternative.formula, costs);
  return alternative;
}

std::string level_line(std::string_view where, const LevelCosts& level, const device::TaskCosts& tasks,
                       bool on_vector_cores) {
  const Seconds notifies = 2 * (tasks.notify_record + tasks.notify_wait);
  const std::string beta = level.read == level.write ? fmt::format("1/({:.4g} GB/s)", level.write / giga)
                                                     : fmt::format("1/({:.4g} GB/s) written, 1/({:.4g} GB/s) read",
                                                                   level.write / giga, level.read / giga);
  const std::string gamma = level.inline_reduce
                                ? "0 (reduced on the way)"
                                : fmt::format("1/({:.4g} GB/s) (by the AI core)", tasks.reduce_bandwidth / giga);
  const std::string set_up = on_vector_cores
                                 ? fmt::format("{:.4g} us of flags + {:.4g} us of access by vector cores",
                                               notifies / microsecond, tasks.sdma_setup / microsecond)
                                 : fmt::format("{:.4g} us of notifies + set-up of {}", notifies / microsecond,
                                               level.transport == sim::Transport::rdma ? "RDMA" : "SDMA");
  return fmt::format("{}: α = {} + {:.4g} us latency, β = {}, γ = {}", where, set_up, level.latency / microsecond, beta,
                     gamma);
}

}  // namespace

Explanation explain(const CollectiveRequest& request, const Communicator& communicator, sim::Cluster& cluster,
                    const device::Soc& soc, const device::TaskCosts& tasks) {
  const Topology topology = topology_of(communicator, cluster);
  const Operation& operation = request.operation;
  Explanation explanation{.rule = select(request, topology, soc).rule,
                          .costs = formula_costs(communicator, cluster, soc, tasks, operation.type, operation.op)};
  Alternative chosen = alternative_of(request, topology, soc, explanation.costs);
  if (chosen.schedule == nullptr) bad_input("collective", "{}", chosen.refused);
  chosen.chosen = true;
  explanation.alternatives.push_back(std::move(chosen));
  for (const CollectiveRequest& other : requests_of_all(request, topology)) {
    Alternative alternative = alternative_of(other, topology, soc, explanation.costs);
    if (alternative.algorithm == explanation.alternatives.front().algorithm) continue;
    explanation.alternatives.push_back(std::move(alternative));
  }
  return explanation;
}

std::vector<std::string> level_lines(const Explanation& explanation) {
  constexpr std::array<std::pair<Extent, std::string_view>, 3> places{{{Extent::server, "In a server"},
                                                                       {Extent::super_pod, "Between servers"},
                                                                       {Extent::cluster, "Between super-pods"}}};
  std::vector<std::string> lines;
  for (const auto& [extent, place] : places) {
    const LevelCosts& costs = explanation.costs.over(extent);
    if (std::isfinite(costs.write)) {
      lines.push_back(level_line(place, costs, explanation.costs.tasks, explanation.on_vector_cores));
    }
  }
  return lines;
}

}  // namespace hcclsim::hccl
