#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hccl/strategies/costs/cost_graph.hpp"
#include "models/graph.hpp"
#include "study/run/experiment/experiment.hpp"

/// What strategies cost in seconds on a platform, where MindSpore's cost models count bytes: of an operator the time of
/// its kernels in all passes, of its updates, of the collective that sums up its result and of those that sum up the
/// gradients of its parameters; of an edge the time of the redistribution forward, and of its dual backward. Kernels
/// take the time of the NPU's cost model, collectives what a simulation of all groups at the same time gives, with
/// nothing else on the links. What a device does by itself for a redistribution, it does at the bandwidth of its HBM.
///
/// The sum of all is the step of a device that does one thing after the other, with one micro-batch. It leaves out what
/// overlaps, and counts a tensor that two operators need in the same way twice.
namespace hcclsim::study {

struct StrategySeconds {
  /// As make_cost_graph() makes it, with seconds as `computation`; of the other figures only the memory is left.
  hccl::CostGraph costs{};
  /// Of every candidate of every operator: its kernels in the forward and the backward pass of a micro-batch. The
  /// compute stream carries them out one behind the other, so no step with these candidates is shorter than their sum.
  std::vector<std::vector<Seconds>> computed{};
};

/// `run` is the one that `on` was made of, without strategies.
[[nodiscard]] StrategySeconds costs_in_seconds(
    const models::Graph& network, const hccl::SearchOptions& options,
    const std::function<std::optional<hccl::DimensionParts>(models::OperatorId)>& fixed, const RunSpec& run,
    Experiment& on);

}  // namespace hcclsim::study
