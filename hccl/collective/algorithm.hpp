#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// The algorithms by name. A table in algorithm.cpp says which of them builds which collective, one row each. How HCCL
/// chooses among them is in selection/selection.hpp. docs/algorithms.md is generated from these comments.
namespace hcclsim::hccl {

enum class Algorithm : std::uint8_t {
  automatic,         ///< HCCL's own choice (selection/selection.hpp)
  ring,              ///< every rank passes slices on to the next one
  multi_ring,        ///< several rings at the same time, each with a part of every slice
  mesh,              ///< every rank works with all others at the same time
  mesh_one_shot,     ///< every rank reads all payloads, then reduces them
  mesh_two_shot,     ///< a reduce-scatter over the mesh, then an all-gather
  halving_doubling,  ///< exchanges with partners at distances that are powers of two; windows halve, then double
  nhr,               ///< nonuniform hierarchical ring: a binomial tree for every slice, for any number of ranks
  nhr_v1,            ///< the older NHR: rings along the rows and columns of a grid of ranks
  nb,                ///< nonuniform Bruck: what a rank knows doubles in every step, for any number of ranks
  pipeline,          ///< a ring between servers and a mesh inside them, both at the same time
  ahc,               ///< asymmetric hierarchical concatenate: over groups that may differ in size
  star,              ///< the root works with all others at the same time
  pairwise,          ///< one partner per step
  direct,            ///< every message straight from its sender to its receiver; a barrier by dissemination
  hierarchical,      ///< an algorithm for each level: die pairs, servers, super-pods
};

/// "auto", "ring", "multi-ring", …
[[nodiscard]] std::string_view name_of(Algorithm algorithm);

/// Inverse of name_of for an algorithm of the collective, or auto. Also accepts the short names "hd" and, for an
/// allreduce, "mesh" (two-shot). Throws Error(bad_input, "option") that lists the names.
[[nodiscard]] Algorithm parse_algorithm(Collective collective, std::string_view name);

/// The algorithms that the table has for a collective, in the order of the enumeration.
[[nodiscard]] std::vector<Algorithm> algorithms_of(Collective collective);
[[nodiscard]] bool has_algorithm(Collective collective, Algorithm algorithm);

/// A level of a hierarchy: groups of equal size, whose members are ranks or groups of the level below.
struct HierarchyLevel {
  Rank size = 1;
  Algorithm algorithm = Algorithm::ring;
  /// multi-ring: order of a group's members in each ring.
  std::vector<std::vector<Rank>> rings{};
  bool inline_reduce = true;  ///< transfers of the level reduce on their way
};

/// Parses "2:ring,8:mesh,4:nhr": sizes and algorithms of the levels, beginning with the innermost; only algorithms that
/// work on a level are accepted (algorithm/hierarchical.hpp). Throws Error(bad_input, "option").
[[nodiscard]] std::vector<HierarchyLevel> parse_levels(std::string_view text);

/// Servers or super-pods that may differ in their numbers of ranks; ranks are numbered group by group.
struct UnevenGroups {
  std::vector<Rank> sizes{};  ///< ranks in each; none if ranks are numbered otherwise
  bool inline_inside = true;  ///< transfers within a group reduce on their way
  bool inline_between = true;
};

/// What builders need to know besides the operation.
struct AlgorithmSetting {
  bool inline_reduce = true;  ///< all transfers reduce on their way
  /// Orders of all ranks, for algorithms of several rings.
  std::vector<std::vector<Rank>> rings{};
  /// For algorithms that work in levels, beginning with the innermost: servers, and what is between them.
  std::vector<HierarchyLevel> levels{};
  UnevenGroups groups{};
};

/// The algorithm's schedule in the form that staging.hpp expects. Throws Error(bad_input, "algorithm") for an algorithm
/// that the table does not have for the collective.
[[nodiscard]] Schedule build_algorithm(Algorithm algorithm, const Operation& operation,
                                       const AlgorithmSetting& setting);

/// Whether `hierarchical` can use the algorithm for the collective on its outermost level.
[[nodiscard]] bool has_outer(Collective collective, Algorithm outer);

}  // namespace hcclsim::hccl
