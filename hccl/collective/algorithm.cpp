#include "hccl/collective/algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "hccl/collective/algorithm/ahc.hpp"
#include "hccl/collective/algorithm/barrier.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/collective/algorithm/halving_doubling.hpp"
#include "hccl/collective/algorithm/hierarchical.hpp"
#include "hccl/collective/algorithm/level_stages.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/nb.hpp"
#include "hccl/collective/algorithm/nhr.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "hccl/collective/algorithm/pairwise.hpp"
#include "hccl/collective/algorithm/pipeline.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/algorithm/ring_rooted.hpp"
#include "hccl/collective/algorithm/star.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 16> algorithm_names{
    "auto",   "ring", "multi-ring", "mesh", "mesh-one-shot", "mesh-two-shot", "halving-doubling", "nhr",
    "nhr-v1", "nb",   "pipeline",   "ahc",  "star",          "pairwise",      "direct",           "hierarchical"};

using Build = Schedule (*)(const Operation&, const AlgorithmSetting&);

struct Row {
  Collective collective;
  Algorithm algorithm;
  Build build;
};

/// For builders that know neither servers nor several rings.
template <Schedule (*build)(const Operation&, bool inline_reduce)>
Schedule flat(const Operation& operation, const AlgorithmSetting& setting) {
  return build(operation, setting.inline_reduce);
}

/// For builders that do not reduce.
template <Schedule (*build)(const Operation&)>
Schedule flat(const Operation& operation, const AlgorithmSetting& /*setting*/) {
  return build(operation);
}

template <Schedule (*build)(const Operation&, const std::vector<std::vector<Rank>>&, bool inline_reduce)>
Schedule in_rings(const Operation& operation, const AlgorithmSetting& setting) {
  return build(operation, setting.rings, setting.inline_reduce);
}

template <Schedule (*build)(const Operation&, const std::vector<std::vector<Rank>>&)>
Schedule in_rings(const Operation& operation, const AlgorithmSetting& setting) {
  return build(operation, setting.rings);
}

template <Schedule (*build)(const Operation&, const std::vector<HierarchyLevel>&)>
Schedule in_levels(const Operation& operation, const AlgorithmSetting& setting) {
  return build(operation, setting.levels);
}

template <Schedule (*build)(const Operation&, const UnevenGroups&)>
Schedule in_groups(const Operation& operation, const AlgorithmSetting& setting) {
  return build(operation, setting.groups);
}

constexpr std::array rows{
    Row{Collective::allreduce, Algorithm::ring, flat<ring_allreduce>},
    Row{Collective::allreduce, Algorithm::multi_ring, in_rings<multi_ring_allreduce>},
    Row{Collective::allreduce, Algorithm::mesh_one_shot, flat<mesh_one_shot_allreduce>},
    Row{Collective::allreduce, Algorithm::mesh_two_shot, flat<mesh_two_shot_allreduce>},
    Row{Collective::allreduce, Algorithm::halving_doubling, flat<halving_doubling_allreduce>},
    Row{Collective::allreduce, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::allreduce, Algorithm::pipeline, in_levels<pipeline>},
    Row{Collective::allreduce, Algorithm::ahc, in_groups<ahc_allreduce>},
    Row{Collective::reduce_scatter, Algorithm::ring, flat<ring_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::multi_ring, in_rings<multi_ring_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::mesh, flat<mesh_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::reduce_scatter, Algorithm::pipeline, in_levels<pipeline>},
    Row{Collective::reduce_scatter, Algorithm::ahc, in_groups<ahc_reduce_scatter>},
    Row{Collective::allgather, Algorithm::ring, flat<ring_all_gather>},
    Row{Collective::allgather, Algorithm::multi_ring, in_rings<multi_ring_all_gather>},
    Row{Collective::allgather, Algorithm::mesh, flat<mesh_all_gather>},
    Row{Collective::allgather, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::allgather, Algorithm::pipeline, in_levels<pipeline>},
    Row{Collective::allgather, Algorithm::ahc, in_groups<ahc_all_gather>},
    Row{Collective::broadcast, Algorithm::ring, flat<ring_broadcast>},
    Row{Collective::broadcast, Algorithm::multi_ring, in_rings<multi_ring_broadcast>},
    Row{Collective::broadcast, Algorithm::mesh, flat<mesh_broadcast>},
    Row{Collective::broadcast, Algorithm::star, flat<star_broadcast>},
    Row{Collective::broadcast, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::reduce, Algorithm::ring, flat<ring_reduce>},
    Row{Collective::reduce, Algorithm::multi_ring, in_rings<multi_ring_reduce>},
    Row{Collective::reduce, Algorithm::mesh, flat<mesh_reduce>},
    Row{Collective::reduce, Algorithm::star, flat<star_reduce>},
    Row{Collective::reduce, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::scatter, Algorithm::ring, flat<ring_scatter>},
    Row{Collective::scatter, Algorithm::multi_ring, in_rings<multi_ring_scatter>},
    Row{Collective::scatter, Algorithm::mesh, flat<mesh_scatter>},
    Row{Collective::scatter, Algorithm::star, flat<star_scatter>},
    Row{Collective::scatter, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::gather, Algorithm::ring, flat<ring_gather>},
    Row{Collective::gather, Algorithm::multi_ring, in_rings<multi_ring_gather>},
    Row{Collective::gather, Algorithm::mesh, flat<mesh_gather>},
    Row{Collective::gather, Algorithm::star, flat<star_gather>},
    Row{Collective::gather, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::alltoall, Algorithm::mesh, flat<mesh_alltoall>},
    Row{Collective::alltoall, Algorithm::pairwise, flat<pairwise_alltoall>},
    Row{Collective::alltoall, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::allreduce, Algorithm::nhr, flat<nhr_allreduce>},
    Row{Collective::allreduce, Algorithm::nhr_v1, flat<nhr_v1_allreduce>},
    Row{Collective::allreduce, Algorithm::nb, flat<nb_allreduce>},
    Row{Collective::reduce_scatter, Algorithm::halving_doubling, flat<halving_doubling_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::nhr, flat<nhr_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::nhr_v1, flat<nhr_v1_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::nb, flat<nb_reduce_scatter>},
    Row{Collective::allgather, Algorithm::halving_doubling, flat<halving_doubling_all_gather>},
    Row{Collective::allgather, Algorithm::nhr, flat<nhr_all_gather>},
    Row{Collective::allgather, Algorithm::nhr_v1, flat<nhr_v1_all_gather>},
    Row{Collective::allgather, Algorithm::nb, flat<nb_all_gather>},
    Row{Collective::broadcast, Algorithm::halving_doubling, flat<halving_doubling_broadcast>},
    Row{Collective::broadcast, Algorithm::nhr, flat<nhr_broadcast>},
    Row{Collective::broadcast, Algorithm::nhr_v1, flat<nhr_v1_broadcast>},
    Row{Collective::broadcast, Algorithm::nb, flat<nb_broadcast>},
    Row{Collective::reduce, Algorithm::halving_doubling, flat<halving_doubling_reduce>},
    Row{Collective::scatter, Algorithm::nhr, flat<nhr_scatter>},
    Row{Collective::scatter, Algorithm::nb, flat<nb_scatter>},
    Row{Collective::send_recv, Algorithm::direct, flat<direct_send_recv>},
    Row{Collective::barrier, Algorithm::direct, flat<direct_barrier>},
};

const Row* find(Collective collective, Algorithm algorithm) {
  for (const Row& row : rows) {
    if (row.collective == collective && row.algorithm == algorithm) return &row;
  }
  return nullptr;
}

bool works_on_levels(Algorithm algorithm) {
  for (int collective = 0; collective < static_cast<int>(Collective::barrier); ++collective) {
    if (works_on_level(algorithm, static_cast<Collective>(collective))) return true;
  }
  return false;
}

Algorithm parse_algorithm_of_level(std::string_view level, std::string_view name) {
  if (name == "hd") return Algorithm::halving_doubling;
  std::vector<std::string> names;
  for (std::size_t number = 0; number < algorithm_names.size(); ++number) {
    const auto algorithm = static_cast<Algorithm>(number);
    if (!works_on_levels(algorithm)) continue;
    if (name_of(algorithm) == name) return algorithm;
    names.emplace_back(name_of(algorithm));
  }
  bad_input("option", "level '{}': '{}' is not an algorithm of a level; accepted: {}; hd is halving-doubling{}", level,
            name, fmt::join(names, ", "), did_you_mean(name, names));
}

/// "ring, multi-ring, …".
std::string names_of(Collective collective) {
  std::string names;
  for (const Algorithm algorithm : algorithms_of(collective)) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(algorithm));
  }
  return names;
}

}  // namespace

std::string_view name_of(Algorithm algorithm) { return algorithm_names[static_cast<std::size_t>(algorithm)]; }

Algorithm parse_algorithm(Collective collective, std::string_view name) {
  const bool two_shots = has_algorithm(collective, Algorithm::mesh_two_shot);
  const bool halving = has_algorithm(collective, Algorithm::halving_doubling);
  if (name == "auto") return Algorithm::automatic;
  if (name == "mesh" && two_shots) return Algorithm::mesh_two_shot;
  if (name == "hd" && halving) return Algorithm::halving_doubling;
  for (const Algorithm algorithm : algorithms_of(collective)) {
    if (name_of(algorithm) == name) return algorithm;
  }
  bad_input("option", "unknown {} algorithm '{}'; accepted: auto, {}{}{}", name_of(collective), name,
            names_of(collective), two_shots ? "; mesh is mesh-two-shot" : "",
            !halving    ? ""
            : two_shots ? ", hd is halving-doubling"
                        : "; hd is halving-doubling");
}

std::vector<HierarchyLevel> parse_levels(std::string_view text) {
  constexpr Rank most = 1U << 20U;
  std::vector<HierarchyLevel> levels;
  for (const std::string_view level : split(text, ',')) {
    const std::size_t colon = std::min(level.find(':'), level.size());
    const Rank size = parse_number<Rank>(level.substr(0, colon)).value_or(0);
    if (colon == level.size() || size == 0 || size > most) {
      bad_input("option",
                "level '{}': give levels as SIZE:ALGORITHM from the innermost on, such as 2:ring,8:mesh,4:nhr", level);
    }
    levels.push_back({.size = size, .algorithm = parse_algorithm_of_level(level, level.substr(colon + 1))});
  }
  return levels;
}

std::vector<Algorithm> algorithms_of(Collective collective) {
  std::vector<Algorithm> all;
  for (std::size_t number = 0; number < algorithm_names.size(); ++number) {
    const auto algorithm = static_cast<Algorithm>(number);
    if (has_algorithm(collective, algorithm)) all.push_back(algorithm);
  }
  return all;
}

bool has_algorithm(Collective collective, Algorithm algorithm) { return find(collective, algorithm) != nullptr; }

Schedule build_algorithm(Algorithm algorithm, const Operation& operation, const AlgorithmSetting& setting) {
  const Row* const row = find(operation.collective, algorithm);
  if (row == nullptr) {
    bad_input("algorithm", "{} has no algorithm {}; use one of {}", name_of(operation.collective), name_of(algorithm),
              names_of(operation.collective));
  }
  return row->build(operation, setting);
}

bool has_outer(Collective collective, Algorithm outer) {
  return has_algorithm(collective, Algorithm::hierarchical) && works_on_level(outer, collective);
}

}  // namespace hcclsim::hccl
