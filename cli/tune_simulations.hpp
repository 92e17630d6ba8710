#pragma once

#include <optional>
#include <vector>

#include "base/child_process.hpp"
#include "cli/experiment.hpp"
#include "cli/options/tune_options.hpp"
#include "study/profile/phases.hpp"
#include "study/split/bound.hpp"
#include "study/split/problem.hpp"

/// What `hcclsim tune` simulates, each in a child of the process that has loaded the platform: steps with a split, and
/// single allreduces.
namespace hcclsim::cli {

/// What the step with a split shows; seconds since fp_start.
struct SimulatedStep {
  std::vector<Seconds> ready;  ///< of the gradients, production order
  Seconds backward_end = 0;
  std::vector<Seconds> ends;  ///< of the allreduces
  Seconds step = 0;           ///< step time
  study::Phases phases;
};

/// Starts the simulation.
[[nodiscard]] Child start_step(Experiment& run, hccl::TrainingOptions training);
/// Waits for it.
[[nodiscard]] SimulatedStep result_of(Child& child);

/// Factor on the bandwidth of some links.
struct BandwidthFactor {
  double factor = 1;
  std::optional<sim::LinkKind> kind{};  ///< none: of all links
};

/// Costs of allreduces of these sizes.
[[nodiscard]] Child start_costs(Experiment& run, std::vector<Bytes> sizes, BandwidthFactor bandwidth = {});
[[nodiscard]] std::vector<study::CostPoint> result_of(Child& child, const std::vector<Bytes>& sizes);

/// The sizes that a cost model needs: some up to that of all gradients, or all that a segment can have. Throws
/// Error(bad_input, "option") if those are too many.
[[nodiscard]] std::vector<Bytes> cost_sizes(study::CostModel model, const study::SplitProblem& problem);

/// The cost by a model from costs of cost_sizes().
[[nodiscard]] study::SegmentCost segment_cost(study::CostModel model, const std::vector<study::CostPoint>& points);

}  // namespace hcclsim::cli
