#pragma once

#include <cstdint>
#include <vector>

#include "device/program.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "study/platform/link_times.hpp"
#include "study/spec/parallel_spec.hpp"

/// Where a network is cut into the stages of a pipeline if its user leaves that to us (--stage-layers balanced).
namespace hcclsim::study {

/// Layers of each part such that the step is short. Cuts for which the slowest part is as fast as can be, with the time
/// of its messages counted in several measures, and the even cut are tried: the Plan of each is walked with the times
/// of its kernels, messages and reductions, each alone on its links, and the shortest step wins, the even cut among
/// equals. `network` is what a device computes of a micro-batch; the replicas of parameters do not share them. Throws
/// Error(bad_input, "pipeline") if there are fewer layers than parts.
[[nodiscard]] std::vector<std::uint32_t> balanced_layers(const hccl::ShardedGraph& network, const ParallelSpec& spec,
                                                         const hccl::PipelineShape& shape, const device::Soc& soc,
                                                         const device::ProgramOptions& how, LinkTimes& links);

}  // namespace hcclsim::study
