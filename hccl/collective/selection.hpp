#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "device/soc.hpp"
#include "hccl/collective/config.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/schedule.hpp"

/// Chooses and builds the schedule of an allreduce, by the user's word or as HCCL does in graph mode from the chip, the
/// topology and the size (spec: HCCL's coll_alg_operator; figures in selection.cpp).
namespace hcclsim::hccl {

enum class AllReduceAlgorithm : std::uint8_t {
  automatic,
  ring,
  multi_ring,
  mesh_one_shot,
  mesh_two_shot,
  halving_doubling,
  hierarchical,
};

[[nodiscard]] std::string_view name_of(AllReduceAlgorithm algorithm);
/// Inverse of name_of ("auto", "ring", "multi-ring", …), also of the short names "mesh" (two-shot) and "hd"; throws
/// Error(bad_input, "option") that lists the names.
[[nodiscard]] AllReduceAlgorithm parse_allreduce_algorithm(std::string_view name);

struct AllReduceRequest {
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic;
  std::uint64_t elements = 0;
  DataType type = DataType::fp32;
  ReduceOp op = ReduceOp::sum;
  /// HCCL_ALGO's level 1 is the algorithm between servers of hierarchical, whether that was asked for or chosen.
  HcclConfig config{};
};

/// Throws Error(bad_input, "allreduce") if the algorithm that was asked for cannot work on the topology, needs more
/// streams or notifies than the chip has, or is none that can be simulated between servers.
[[nodiscard]] std::shared_ptr<const Schedule> make_allreduce(const AllReduceRequest& request, const Topology& topology,
                                                             const device::Soc& soc);

/// Why make_allreduce takes the algorithm that it takes, with the figures that decide.
[[nodiscard]] std::string allreduce_rule(const AllReduceRequest& request, const Topology& topology,
                                         const device::Soc& soc);

}  // namespace hcclsim::hccl
