#pragma once

#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"

/// How short can a step be at least? A bound below every simulation of it, found without one and without the Plan of
/// all its micro-batches, so that a search can tell quickly what is not worth a simulation.
///
/// What a stage computes of one micro-batch in one direction and chunk is a pass. The compute stream of a rank carries
/// its passes out one behind the other, so the step takes at least the sum of their lengths. The length of a pass is
/// the longest path from its first kernel to its last one: kernels take their time, and a collective or a message as
/// long as the rank needs for the transfers that it carries out itself, one behind the other in each of its queues,
/// each with the whole capacity of the links on its way. Nobody waits for other ranks, links, posts and reductions.
/// Where NPUs have speeds, jitter or faults, kernels and transfers are as short as these can make them.
///
/// Of a pipeline, the first pass of a stage waits for the first ones of all stages before it, and its last pass comes
/// before their last ones: the first micro-batch goes forward through all stages before the last stage begins, and
/// behind the last pass of that one a micro-batch goes back through all of them. So a path leads through the first
/// passes, then through all passes of one stage, then back through the last ones and what follows them: reductions of
/// gradients and updates. This holds whatever the order of passes is, if the first one is forward and the last one
/// backward in the first chunk, as with every schedule (hccl/parallel/pipeline/schedule.hpp).
///
/// A stream that communicates takes its tasks one behind the other, too, so their sum is a bound as well.
namespace hcclsim::hccl {

/// Of the first step, in seconds. Where it has many micro-batches, those in the middle count with the shortest of a
/// few. Device 0 of each stage is looked at.
[[nodiscard]] Seconds least_step(sim::Cluster& cluster, const device::Soc& soc, const TrainingStep& training);

/// No kernel of a rank takes a smaller part of its duration: its speed, jitter and faults make it as short.
[[nodiscard]] double least_kernel_factor(const SimulationOptions& options, Rank rank);

}  // namespace hcclsim::hccl
