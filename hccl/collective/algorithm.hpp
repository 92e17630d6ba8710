#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// The algorithms by name, and the table that says which builds which collective: one row each, in algorithm.cpp. What
/// HCCL chooses among them is in selection.hpp.
namespace hcclsim::hccl {

enum class Algorithm : std::uint8_t {
  automatic,
  ring,
  multi_ring,
  mesh,
  mesh_one_shot,
  mesh_two_shot,
  halving_doubling,
  nhr,
  nhr_v1,
  nb,
  pipeline,
  ahc,
  star,
  pairwise,
  direct,
  hierarchical,
};

/// "auto", "ring", "multi-ring", …
[[nodiscard]] std::string_view name_of(Algorithm algorithm);

/// Inverse of name_of for an algorithm of the collective, or auto; also of the short names "hd" and, of an allreduce,
/// "mesh" (two-shot). Throws Error(bad_input, "option") that lists the names.
[[nodiscard]] Algorithm parse_algorithm(Collective collective, std::string_view name);

/// Those that the table has for a collective, in the order of the enumeration.
[[nodiscard]] std::vector<Algorithm> algorithms_of(Collective collective);
[[nodiscard]] bool has_algorithm(Collective collective, Algorithm algorithm);

/// What builders need to know besides the operation.
struct AlgorithmSetting {
  /// Transfers reduce on their way: within servers, between them, and all of them, which is what an algorithm that does
  /// not know servers needs.
  bool inline_inside = true;
  bool inline_between = true;
  bool inline_reduce = true;
  Rank ranks_per_server = 1;
  /// Orders of the ranks of a server, or of all ranks if there is one, for algorithms of several rings.
  std::vector<std::vector<Rank>> rings{};
  Algorithm inner = Algorithm::ring;  ///< hierarchical: within servers
  Algorithm outer = Algorithm::ring;  ///< hierarchical: between servers
};

/// The algorithm's schedule in the form that staging.hpp takes. Throws Error(bad_input, "algorithm") for an algorithm
/// that the table does not have.
[[nodiscard]] Schedule build_algorithm(Algorithm algorithm, const Operation& operation,
                                       const AlgorithmSetting& setting);

/// Whether hierarchical has the algorithm for the collective between servers.
[[nodiscard]] bool has_outer(Collective collective, Algorithm outer);

}  // namespace hcclsim::hccl
