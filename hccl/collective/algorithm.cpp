#include "hccl/collective/algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "hccl/collective/algorithm/barrier.hpp"
#include "hccl/collective/algorithm/direct.hpp"
#include "hccl/collective/algorithm/levels/ahc.hpp"
#include "hccl/collective/algorithm/levels/hierarchical.hpp"
#include "hccl/collective/algorithm/levels/level_stages.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "hccl/collective/algorithm/pairwise.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/algorithm/rooted/pipeline.hpp"
#include "hccl/collective/algorithm/rooted/ring_rooted.hpp"
#include "hccl/collective/algorithm/rooted/rooted.hpp"
#include "hccl/collective/algorithm/rooted/star.hpp"

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

/// Among all ranks as on a level of a hierarchy.
template <Algorithm algorithm>
Schedule as_level(const Operation& operation, const AlgorithmSetting& setting) {
  Builder builder(operation, std::string(name_of(algorithm)));
  const Level level{builder.add_group(Group::block(operation.ranks)), {}, setting.inline_reduce};
  add_level(builder, operation.collective, {.algorithm = algorithm, .level = level, .root = operation.root});
  return std::move(builder).finish();
}

/// Stages among all ranks, counted from the root if there is one.
template <Algorithm algorithm, void (*... add)(Builder&, const Level&)>
Schedule in_stages(const Operation& operation, const AlgorithmSetting& setting) {
  Builder builder(operation, std::string(name_of(algorithm)));
  const Rank root = is_rooted(operation.collective) ? operation.root : 0;
  const Level level{builder.add_group(rooted_at(root, operation.ranks)), {}, setting.inline_reduce};
  (add(builder, level), ...);
  return std::move(builder).finish();
}

template <RingLoop... loops>
Schedule in_one_ring(const Operation& operation, const AlgorithmSetting& setting) {
  return in_rings(operation, {}, setting.inline_reduce, {loops...});
}

template <RingLoop... loops>
Schedule in_all_rings(const Operation& operation, const AlgorithmSetting& setting) {
  return in_rings(operation, setting.rings, setting.inline_reduce, {loops...});
}

template <Schedule (*build)(const Operation&, const RingOrders&, bool inline_reduce)>
Schedule in_orders(const Operation& operation, const AlgorithmSetting& setting) {
  return build(operation, setting.rings, setting.inline_reduce);
}

template <Algorithm algorithm, AlltoallStrands strands>
Schedule exchanged(const Operation& operation, const AlgorithmSetting& /*setting*/) {
  Builder builder(operation, std::string(name_of(algorithm)));
  const Level level{builder.add_group(Group::block(operation.ranks))};
  std::vector<Strand> all = strands(builder, level, alltoall_of_blocks(builder, level));
  builder.add_stage(fmt::format("{} alltoall", name_of(algorithm))).strands = std::move(all);
  return std::move(builder).finish();
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
    Row{Collective::allreduce, Algorithm::ring, in_one_ring<ring_reduce_scatter, ring_all_gather>},
    Row{Collective::allreduce, Algorithm::multi_ring, in_all_rings<ring_reduce_scatter, ring_all_gather>},
    Row{Collective::allreduce, Algorithm::mesh_one_shot, flat<mesh_one_shot_allreduce>},
    Row{Collective::allreduce, Algorithm::mesh_two_shot,
        in_stages<Algorithm::mesh_two_shot, mesh_reduce_scatter, mesh_all_gather>},
    Row{Collective::allreduce, Algorithm::halving_doubling, as_level<Algorithm::halving_doubling>},
    Row{Collective::allreduce, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::allreduce, Algorithm::pipeline, in_levels<pipeline>},
    Row{Collective::allreduce, Algorithm::ahc, in_groups<ahc>},
    Row{Collective::reduce_scatter, Algorithm::ring, in_one_ring<ring_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::multi_ring, in_all_rings<ring_reduce_scatter>},
    Row{Collective::reduce_scatter, Algorithm::mesh, as_level<Algorithm::mesh>},
    Row{Collective::reduce_scatter, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::reduce_scatter, Algorithm::pipeline, in_levels<pipeline>},
    Row{Collective::reduce_scatter, Algorithm::ahc, in_groups<ahc>},
    Row{Collective::allgather, Algorithm::ring, in_one_ring<ring_all_gather>},
    Row{Collective::allgather, Algorithm::multi_ring, in_all_rings<ring_all_gather>},
    Row{Collective::allgather, Algorithm::mesh, as_level<Algorithm::mesh>},
    Row{Collective::allgather, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::allgather, Algorithm::pipeline, in_levels<pipeline>},
    Row{Collective::allgather, Algorithm::ahc, in_groups<ahc>},
    Row{Collective::broadcast, Algorithm::ring, in_stages<Algorithm::ring, ring_broadcast>},
    Row{Collective::broadcast, Algorithm::multi_ring, in_orders<multi_ring_rooted>},
    Row{Collective::broadcast, Algorithm::mesh, in_stages<Algorithm::mesh, mesh_broadcast>},
    Row{Collective::broadcast, Algorithm::star, in_stages<Algorithm::star, star_broadcast>},
    Row{Collective::broadcast, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::reduce, Algorithm::ring, in_stages<Algorithm::ring, ring_reduce>},
    Row{Collective::reduce, Algorithm::multi_ring, in_orders<multi_ring_rooted>},
    Row{Collective::reduce, Algorithm::mesh, in_stages<Algorithm::mesh, mesh_reduce>},
    Row{Collective::reduce, Algorithm::star, in_stages<Algorithm::star, star_reduce>},
    Row{Collective::reduce, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::scatter, Algorithm::ring, in_stages<Algorithm::ring, ring_scatter>},
    Row{Collective::scatter, Algorithm::multi_ring, in_orders<multi_ring_rooted>},
    Row{Collective::scatter, Algorithm::mesh, in_stages<Algorithm::mesh, star_scatter>},
    Row{Collective::scatter, Algorithm::star, in_stages<Algorithm::star, star_scatter>},
    Row{Collective::scatter, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::gather, Algorithm::ring, in_stages<Algorithm::ring, ring_gather>},
    Row{Collective::gather, Algorithm::multi_ring, in_orders<multi_ring_rooted>},
    Row{Collective::gather, Algorithm::mesh, in_stages<Algorithm::mesh, star_gather>},
    Row{Collective::gather, Algorithm::star, in_stages<Algorithm::star, star_gather>},
    Row{Collective::gather, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::alltoall, Algorithm::mesh, exchanged<Algorithm::mesh, mesh_blocks>},
    Row{Collective::alltoall, Algorithm::pairwise, exchanged<Algorithm::pairwise, pairwise_blocks>},
    Row{Collective::alltoall, Algorithm::hierarchical, in_levels<hierarchical>},
    Row{Collective::allreduce, Algorithm::nhr, as_level<Algorithm::nhr>},
    Row{Collective::allreduce, Algorithm::nhr_v1, as_level<Algorithm::nhr_v1>},
    Row{Collective::allreduce, Algorithm::nb, as_level<Algorithm::nb>},
    Row{Collective::reduce_scatter, Algorithm::halving_doubling, as_level<Algorithm::halving_doubling>},
    Row{Collective::reduce_scatter, Algorithm::nhr, as_level<Algorithm::nhr>},
    Row{Collective::reduce_scatter, Algorithm::nhr_v1, as_level<Algorithm::nhr_v1>},
    Row{Collective::reduce_scatter, Algorithm::nb, as_level<Algorithm::nb>},
    Row{Collective::allgather, Algorithm::halving_doubling, as_level<Algorithm::halving_doubling>},
    Row{Collective::allgather, Algorithm::nhr, as_level<Algorithm::nhr>},
    Row{Collective::allgather, Algorithm::nhr_v1, as_level<Algorithm::nhr_v1>},
    Row{Collective::allgather, Algorithm::nb, as_level<Algorithm::nb>},
    Row{Collective::broadcast, Algorithm::halving_doubling, as_level<Algorithm::halving_doubling>},
    Row{Collective::broadcast, Algorithm::nhr, as_level<Algorithm::nhr>},
    Row{Collective::broadcast, Algorithm::nhr_v1, flat<nhr_v1_broadcast>},
    Row{Collective::broadcast, Algorithm::nb, as_level<Algorithm::nb>},
    Row{Collective::reduce, Algorithm::halving_doubling, as_level<Algorithm::halving_doubling>},
    Row{Collective::scatter, Algorithm::nhr, as_level<Algorithm::nhr>},
    Row{Collective::scatter, Algorithm::nb, as_level<Algorithm::nb>},
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
