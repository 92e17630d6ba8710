#pragma once

#include <string>
#include <vector>

#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/alltoall.hpp"

/// One level of a hierarchy (hierarchical.hpp): the same algorithms as over all ranks, among the ranks of every group
/// of the level, on the part of the payload that the other levels leave to it. A table in level_stages.cpp says which
/// algorithm does which collective, one row each.
namespace hcclsim::hccl {

/// A level with its place in the hierarchy and in the schedule.
struct LevelStages {
  Algorithm algorithm = Algorithm::ring;
  Level level;                         ///< group: the ranks in their own order
  std::vector<std::uint16_t> rings{};  ///< ring and multi-ring: the groups of the rings
  Rank root = 0;                       ///< place of the root in its group; of collectives with a root
  std::string place{};                 ///< of stage names: "in the server"
  Alltoall alltoall{};                 ///< of alltoall
};

/// Whether the algorithm does a collective on a level.
[[nodiscard]] bool works_on_level(Algorithm algorithm, Collective collective);

/// Adds the stages of a collective on the level. Throws Error(bad_input, "hierarchical") if the algorithm cannot do it.
void add_level(Builder& builder, Collective collective, const LevelStages& stages);

}  // namespace hcclsim::hccl
