#include "hccl/collective/selection/algo_notes.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "hccl/collective/selection/algo_level.hpp"
#include "hccl/settings/variables.hpp"

namespace hcclsim::hccl {
namespace {

bool says(LevelAlgorithm algorithm) { return algorithm != LevelAlgorithm::automatic; }

/// What was asked for in place of HCCL_ALGO; empty if HCCL_ALGO decides.
std::string asked_for_otherwise(const CollectiveRequest& request) {
  if (!request.levels.empty()) return "levels were asked for";
  // Hierarchical leaves the algorithms of its levels to HCCL, but for alltoall.
  const bool open = request.algorithm == Algorithm::automatic || (request.algorithm == Algorithm::hierarchical &&
                                                                  request.operation.collective != Collective::alltoall);
  return open ? "" : fmt::format("{} was asked for", name_of(request.algorithm));
}

/// Why there is no such level for the ranks; empty if there is. Follows the choice in selection.cpp.
std::string level_missing(int level, LevelAlgorithm algorithm, Collective collective, const Topology& topology) {
  if (topology.servers == 1) return "all NPUs are on one server";
  if (level == 2 && topology.super_pods.empty()) return "all servers are in one super-pod";
  if (collective == Collective::alltoall) return {};  // pairwise, over all ranks
  const bool ahc = algorithm == LevelAlgorithm::ahc;
  if (topology.ranks_per_server == 0 && !(ahc && !topology.uneven_servers.empty())) {
    return "the servers' numbers of NPUs differ, or ranks are not numbered server by server";
  }
  if (level == 1 && !ahc && topology.servers_per_pod() == 1) return "groups of the super-pods are of one server each";
  return {};
}

}  // namespace

std::vector<std::string> algo_notes(std::span<const HcclSetting> settings, const CollectiveRequest& request,
                                    const Topology& topology, device::Generation generation) {
  const HcclSetting* const setting = find_setting(settings, "HCCL_ALGO");
  if (setting == nullptr) return {};
  const auto no_effect = [&](std::string_view reason) {
    return std::vector{fmt::format("{} has no effect: {}", setting->origin, reason)};
  };
  const Collective collective = request.operation.collective;
  const std::optional<AlgoOperator> op = algo_operator_of(collective);
  if (!op.has_value()) return no_effect(fmt::format("HCCL has no choice for {}", name_of(collective)));
  if (const std::string other = asked_for_otherwise(request); !other.empty()) return no_effect(other);
  const AlgoLevels said = parse_algo_setting(setting->value).of(*op);
  if (!says(said.between_servers) && !says(said.between_super_pods)) {
    return no_effect(fmt::format("it names no algorithm for {}", name_of(*op)));
  }
  const AlgoLevels left = available(said, generation, *op);
  std::vector<std::string> notes;
  const auto look_at = [&](int level, LevelAlgorithm asked, LevelAlgorithm obeyed) {
    if (!says(asked)) return;
    if (!says(obeyed)) {
      notes.push_back(fmt::format("{}: HCCL on {} does not have level{}:{} for {} and chooses itself", setting->origin,
                                  product_of(generation), level, name_of(asked), name_of(*op)));
      return;
    }
    const std::string missing = level_missing(level, asked, collective, topology);
    if (missing.empty()) return;
    notes.push_back(fmt::format("{} level{}:{} has no effect: {}", setting->origin, level, name_of(asked), missing));
  };
  look_at(1, said.between_servers, left.between_servers);
  // AHC spans both levels but is named for one.
  if (said.between_servers != LevelAlgorithm::ahc) look_at(2, said.between_super_pods, left.between_super_pods);
  return notes;
}

}  // namespace hcclsim::hccl
