#include "hccl/collective/algorithm/levels/level_stages.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/algorithm/halving_doubling.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/nb.hpp"
#include "hccl/collective/algorithm/nhr.hpp"
#include "hccl/collective/algorithm/nhr_v1.hpp"
#include "hccl/collective/algorithm/pairwise.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/algorithm/rooted/ring_rooted.hpp"
#include "hccl/collective/algorithm/rooted/rooted.hpp"
#include "hccl/collective/algorithm/rooted/star.hpp"

namespace hcclsim::hccl {
namespace {

/// One stage in which all rings of the level run at once.
template <bool scatters, bool gathers>
void add_rings(Builder& builder, const LevelStages& stages) {
  constexpr std::string_view name = scatters && gathers ? "ring" : scatters ? "reduce-scatter" : "all-gather";
  const auto rings = static_cast<std::uint32_t>(stages.rings.size());
  std::vector<Strand> strands;
  for (std::uint32_t ring = 0; ring < rings; ++ring) {
    Level level = stages.level;
    level.group = stages.rings[ring];
    Strand strand{.group = level.group, .first_queue = ring};
    if (scatters) strand.loops.push_back(ring_reduce_scatter(builder, level, ring, rings));
    if (gathers) strand.loops.push_back(ring_all_gather(builder, level, ring, rings));
    strands.push_back(std::move(strand));
  }
  builder.add_stage(fmt::format("{} {}", name, stages.place)).strands = std::move(strands);
}

template <void (*... add)(Builder&, const Level&)>
void add_in_turn(Builder& builder, const LevelStages& stages) {
  (add(builder, stages.level), ...);
}

/// For algorithms that need the root at position 0.
template <void (*add)(Builder&, const Level&)>
void add_rooted(Builder& builder, const LevelStages& stages) {
  const Group group = builder.group(stages.level.group);
  Level level = stages.level;
  level.group = builder.add_group(rooted_at(stages.root, group.span(), group.stride()));
  add(builder, level);
}

/// For algorithms that get the position of the root as an argument.
template <void (*add)(Builder&, const Level&, Rank root)>
void add_with_root(Builder& builder, const LevelStages& stages) {
  add(builder, stages.level, stages.root);
}

template <AlltoallStrands make>
void add_blocks(Builder& builder, const LevelStages& stages) {
  std::vector<Strand> strands = make(builder, stages.level, stages.alltoall);
  builder.add_stage(fmt::format("alltoall {}", stages.place)).strands = std::move(strands);
}

struct Row {
  Algorithm algorithm;
  Collective collective;
  void (*add)(Builder&, const LevelStages&);
  bool blocks_only = false;  ///< not on slices, as an allreduce or a broadcast over several levels needs it
};

constexpr std::array rows{
    Row{Algorithm::ring, Collective::allreduce, add_rings<true, true>},
    Row{Algorithm::ring, Collective::reduce_scatter, add_rings<true, false>},
    Row{Algorithm::ring, Collective::allgather, add_rings<false, true>},
    Row{Algorithm::multi_ring, Collective::allreduce, add_rings<true, true>},
    Row{Algorithm::multi_ring, Collective::reduce_scatter, add_rings<true, false>},
    Row{Algorithm::multi_ring, Collective::allgather, add_rings<false, true>},
    Row{Algorithm::mesh, Collective::allreduce, add_in_turn<mesh_reduce_scatter, mesh_all_gather>},
    Row{Algorithm::mesh, Collective::reduce_scatter, add_in_turn<mesh_reduce_scatter>},
    Row{Algorithm::mesh, Collective::allgather, add_in_turn<mesh_all_gather>},
    Row{Algorithm::halving_doubling, Collective::allreduce, add_in_turn<halving_doubling_stages>},
    Row{Algorithm::halving_doubling, Collective::reduce_scatter, add_in_turn<halving_doubling_reduce_scatter_stages>,
        true},
    Row{Algorithm::halving_doubling, Collective::allgather, add_in_turn<halving_doubling_all_gather_stages>, true},
    Row{Algorithm::nhr, Collective::allreduce, add_in_turn<nhr_reduce_scatter_stages, nhr_all_gather_stages>},
    Row{Algorithm::nhr, Collective::reduce_scatter, add_in_turn<nhr_reduce_scatter_stages>},
    Row{Algorithm::nhr, Collective::allgather, add_in_turn<nhr_all_gather_stages>},
    Row{Algorithm::nhr_v1, Collective::allreduce, add_in_turn<nhr_v1_allreduce_stages>},
    Row{Algorithm::nhr_v1, Collective::reduce_scatter, add_in_turn<nhr_v1_reduce_scatter_stages>, true},
    Row{Algorithm::nhr_v1, Collective::allgather, add_in_turn<nhr_v1_all_gather_stages>, true},
    Row{Algorithm::nb, Collective::allreduce, add_in_turn<nb_reduce_scatter_stages, nb_all_gather_stages>},
    Row{Algorithm::nb, Collective::reduce_scatter, add_in_turn<nb_reduce_scatter_stages>},
    Row{Algorithm::nb, Collective::allgather, add_in_turn<nb_all_gather_stages>},
    // With a root; only one of several rings works.
    Row{Algorithm::ring, Collective::broadcast, add_rooted<ring_broadcast>},
    Row{Algorithm::ring, Collective::reduce, add_rooted<ring_reduce>},
    Row{Algorithm::ring, Collective::scatter, add_rooted<ring_scatter>},
    Row{Algorithm::ring, Collective::gather, add_rooted<ring_gather>},
    Row{Algorithm::multi_ring, Collective::broadcast, add_rooted<ring_broadcast>},
    Row{Algorithm::multi_ring, Collective::reduce, add_rooted<ring_reduce>},
    Row{Algorithm::multi_ring, Collective::scatter, add_rooted<ring_scatter>},
    Row{Algorithm::multi_ring, Collective::gather, add_rooted<ring_gather>},
    Row{Algorithm::mesh, Collective::broadcast, add_rooted<mesh_broadcast>},
    Row{Algorithm::mesh, Collective::reduce, add_rooted<mesh_reduce>},
    Row{Algorithm::mesh, Collective::scatter, add_rooted<star_scatter>},
    Row{Algorithm::mesh, Collective::gather, add_rooted<star_gather>},
    Row{Algorithm::halving_doubling, Collective::broadcast, add_with_root<halving_doubling_broadcast_stages>},
    Row{Algorithm::halving_doubling, Collective::reduce, add_with_root<halving_doubling_reduce_stages>},
    Row{Algorithm::nhr, Collective::broadcast, add_with_root<nhr_broadcast_stages>},
    Row{Algorithm::nhr, Collective::scatter, add_with_root<nhr_scatter_stages>},
    Row{Algorithm::nb, Collective::broadcast, add_with_root<nb_broadcast_stages>},
    Row{Algorithm::nb, Collective::scatter, add_with_root<nb_scatter_stages>},
    Row{Algorithm::mesh, Collective::alltoall, add_blocks<mesh_blocks>},
    Row{Algorithm::pairwise, Collective::alltoall, add_blocks<pairwise_blocks>},
};

const Row* find(Algorithm algorithm, Collective collective) {
  for (const Row& row : rows) {
    if (row.algorithm == algorithm && row.collective == collective) return &row;
  }
  return nullptr;
}

}  // namespace

bool works_on_level(Algorithm algorithm, Collective collective) { return find(algorithm, collective) != nullptr; }

void add_level(Builder& builder, Collective collective, const LevelStages& stages) {
  const Row* const row = find(stages.algorithm, collective);
  const bool takes_all = builder.has_blocks() || builder.size(stages.level.group) == 1;
  const auto possible = [&](const Row& each) { return !each.blocks_only || takes_all; };
  if (row == nullptr || !possible(*row)) {
    std::string others;
    for (const Row& other : rows) {
      if (other.collective == collective && possible(other))
        others += fmt::format("{}{}", others.empty() ? "" : ", ", name_of(other.algorithm));
    }
    bad_input("hierarchical", "{} does no {} {}; use one of {}", name_of(stages.algorithm), name_of(collective),
              stages.place, others);
  }
  row->add(builder, stages);
}

}  // namespace hcclsim::hccl
