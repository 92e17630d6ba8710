#pragma once

#include <span>
#include <vector>

#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "study/run/split/bound.hpp"

/// What an allreduce of a training step costs, by simulation: alone on the idle platform, all NPUs starting at once, by
/// the algorithm that the step would use for that size.
namespace hcclsim::study {

/// Times for these sizes, in their order. A size that is no whole number of elements is rounded up. `training`: NPUs,
/// algorithm, launch mode and settings of HCCL. The network is `fluid`, which runs any number of simulations in a
/// process.
[[nodiscard]] std::vector<CostPoint> simulate_costs(sim::Cluster& cluster, const device::Soc& soc,
                                                    const device::TaskCosts& costs, const hccl::TrainingStep& training,
                                                    DataType type, std::span<const Bytes> sizes);

/// About `most` sizes from 1 KiB to `largest`, each the same factor above the one before; at least two.
[[nodiscard]] std::vector<Bytes> sizes_up_to(Bytes largest, std::size_t most);

}  // namespace hcclsim::study
