#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/child_process.hpp"
#include "study/files/profile/phases.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/split/bound.hpp"
#include "study/run/split/problem.hpp"
#include "study/run/split/tuning.hpp"

/// What a search for splits simulates, each in a child of the process that has loaded the platform: steps with a
/// split, and single allreduces.
namespace hcclsim::study {

/// An allreduce of a simulated step.
struct SimulatedSegment {
  Seconds start = 0;
  Seconds end = 0;
  bool waited = false;  ///< most of its time it waited for a rank that was late
};

/// What the step with a split shows; seconds since fp_start.
struct SimulatedStep {
  std::vector<Seconds> ready;  ///< of the gradients, production order
  Seconds backward_end = 0;
  std::vector<SimulatedSegment> segments;
  Seconds step = 0;  ///< step time
  Phases phases;
};

/// Starts the simulation.
[[nodiscard]] ChildOf<SimulatedStep> start_step(Experiment& run, hccl::TrainingStep training);

/// Factor on the bandwidth of some links.
struct BandwidthFactor {
  double factor = 1;
  std::optional<sim::LinkKind> kind{};  ///< none: of all links
};

/// What a cluster takes for it.
[[nodiscard]] std::map<sim::LinkKind, sim::LinkAdjustment> adjustments_of(const sim::Cluster& cluster,
                                                                          const BandwidthFactor& bandwidth);

/// Costs of allreduces of these sizes.
[[nodiscard]] ChildOf<std::vector<CostPoint>> start_costs(Experiment& run, std::vector<Bytes> sizes,
                                                          BandwidthFactor bandwidth = {});

/// The sizes that a cost model needs: some up to that of all gradients, or all that a segment can have. Throws
/// Error(bad_input, "option") if those are too many.
[[nodiscard]] std::vector<Bytes> cost_sizes(CostModel model, const SplitProblem& problem);

/// By which parts of a table may miss the points that they lie on, as a fraction of their time.
inline constexpr double table_tolerance = 2e-4;

/// The cost by a model from costs of cost_sizes().
[[nodiscard]] SegmentCost segment_cost(CostModel model, const std::vector<CostPoint>& points);

}  // namespace hcclsim::study
