#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/soc.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/config.hpp"
#include "hccl/settings/launch_mode.hpp"

/// Chooses and builds the schedule of a collective: the algorithm that the user asks for, or the one that HCCL chooses
/// by chip, topology, launch mode and size. HCCL's rules (its coll_alg_operator and the operators' selection, figures
/// in selection.cpp and between_servers.cpp):
///
///     in a server     910A        allreduce, op mode, up to 1 MB, 4 or 8 ranks: halving-doubling; a whole server of
///                                 eight: four rings; 4: mesh; else ring
///                     A2          mesh; allreduce one-shot up to 256 KB in op mode, 64 KB in graph mode
///                     A3          double ring; two dies: ring
///     several servers             the above in the servers, and between them
///                     910A        halving-doubling if their number is a power of two, else ring
///                     A2, A3      reduce-scatter, allgather, allreduce: the least of HCCL's estimates for ring, NHR
///                                 and halving-doubling
///                     A2          pipeline for large payloads in op mode, unless reductions have to be
///                                 deterministic
///                     broadcast   halving-doubling; A3: NHR
///                     reduce      halving-doubling; A3: ring
///                     scatter     ring
///                     alltoall on 910A and A2: in the servers, then between them; on A3 and where blocks differ: one
///                     partner at a time over all ranks
///                     other numbers of ranks on each server: one ring over all ranks
///     several super-pods (A3)     the above in each of them, and between_servers.hpp between them; super-pods that
///                     differ in their numbers of servers as groups of their greatest common divisor
///
/// HCCL_ALGO's level 1 decides between servers, level 2 between super-pods; AHC takes super-pods as its groups, or
/// servers where there is one super-pod. Cases that HCCL leaves open are decided here: gather, which HCCL has only
/// inside other operators, is the star. For alltoall HCCL moves all pairs in a server at once; here that is the mesh if
/// all pairs have links (A2, A3), and pairwise otherwise.
namespace hcclsim::hccl {

struct CollectiveRequest {
  /// With the topology's number of ranks.
  Operation operation{};
  Algorithm algorithm = Algorithm::automatic;
  LaunchMode launch = LaunchMode::graph;
  /// Op mode on buffers that were registered for it: peers can access them, as in graph mode.
  bool zero_copy = false;
  HcclConfig config{};
  /// The levels of a hierarchy that is asked for, beginning with the innermost; the product of their sizes is the
  /// number of ranks. The rings of multi-ring, and whether transfers reduce on their way, are filled in. Empty: HCCL's
  /// levels.
  std::vector<HierarchyLevel> levels{};
};

struct Selection {
  Algorithm algorithm = Algorithm::automatic;
  std::string rule{};  ///< why, for people, with the figures that decide
  /// For algorithms that work in levels, beginning with the innermost, with sizes and algorithms: the levels that were
  /// asked for, or HCCL's servers and super-pods, if there are several.
  std::vector<HierarchyLevel> levels{};
};

/// The algorithm that was asked for, or HCCL's choice. Throws Error(bad_input, "collective") if HCCL_ALGO names an
/// algorithm between servers that cannot be simulated for the collective, or if `hierarchical` was asked for but cannot
/// work.
[[nodiscard]] Selection select(const CollectiveRequest& request, const Topology& topology, const device::Soc& soc);

/// Throws Error(bad_input, "collective") if the algorithm cannot work on the topology or needs more streams or notifies
/// than the chip has, and what `select` and `staged` throw.
[[nodiscard]] std::shared_ptr<const Schedule> make_collective(const CollectiveRequest& request,
                                                              const Topology& topology, const device::Soc& soc);

}  // namespace hcclsim::hccl
