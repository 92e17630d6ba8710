#include "hccl/collective/level.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/halving_doubling.hpp"
#include "hccl/collective/mesh.hpp"
#include "hccl/collective/ring.hpp"

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

struct Row {
  Algorithm algorithm;
  Collective collective;
  void (*add)(Builder&, const LevelStages&);
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
  if (row == nullptr) {
    std::string others;
    for (const Row& other : rows) {
      if (other.collective == collective)
        others += fmt::format("{}{}", others.empty() ? "" : ", ", name_of(other.algorithm));
    }
    bad_input("hierarchical", "{} does no {} {}; use one of {}", name_of(stages.algorithm), name_of(collective),
              stages.place, others);
  }
  row->add(builder, stages);
}

}  // namespace hcclsim::hccl
