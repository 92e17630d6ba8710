#pragma once

#include <string>
#include <vector>

#include "hccl/collective/formula.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "tests/support/rig.hpp"

namespace hcclsim::test {

/// Of a schedule: what the simulation takes, and what its formula says.
struct FormulaTimes {
  Seconds simulated = 0;
  Seconds formula = 0;
};

/// What formula_of and formula_time say of a schedule of fp32 on the rig's cluster.
inline Seconds formula_time_of(const hccl::Schedule& schedule, Rig& rig, ReduceOp op) {
  const hccl::Communicator world = hccl::world_communicator(schedule.ranks);
  std::vector<std::string> notes;
  const device::Soc soc = device::resolve_soc(rig.cluster, 0, notes);
  const auto terms = hccl::formula_of(schedule.algorithm, schedule, hccl::topology_of(world, rig.cluster), soc, {});
  return hccl::formula_time(terms.value(), hccl::formula_costs(world, rig.cluster, soc, rig.costs, DataType::fp32, op));
}

}  // namespace hcclsim::test
