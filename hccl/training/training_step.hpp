#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/shared_work.hpp"
#include "base/units.hpp"
#include "device/skew.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/stage_program.hpp"
#include "hccl/parallel/step_spec.hpp"
#include "hccl/runtime/fold/fold.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// A training step that is to be simulated: what its ranks do, and how they are simulated.
namespace hcclsim::hccl {

/// Takes spans as they end, so that a trace of any length is never held as a whole.
struct SpanStream {
  std::vector<Rank> ranks;  ///< all of their spans, those inside collectives too; but for what hosts do
  std::function<void(const Plan& plan, const sim::Trace& trace, const sim::Span& span)> take;
};

/// How a step is simulated, not what it does.
struct SimulationOptions {
  std::uint32_t iterations = 3;
  Rank rank = 0;                               ///< whose figures are reported
  std::vector<Rank> traced{};                  ///< ranks in the trace, besides `rank`
  bool trace_tasks = false;                    ///< the trace holds the tasks inside collectives too
  std::shared_ptr<const SpanStream> stream{};  ///< null: none; the trace has what hosts of its ranks do
  /// The kernels of a task share a span in the trace, but for those of the last iteration.
  bool merges_kernels = false;
  bool record_flows = false;  ///< the result has the transfers of the last iteration, and what reaches into it
  sim::NetworkKind network = sim::NetworkKind::fluid;
  Fold fold = Fold::automatic;
  bool hbm_contention = false;  ///< NPUs are shared (runtime/shared_npus.hpp); the network is `fluid`
  device::Skew skew{};
  std::shared_ptr<SharedWork> work{};              ///< in which iterations are counted; null: nobody asks
  std::shared_ptr<const sim::FaultPlan> faults{};  ///< of the cluster's links and these NPUs; null: none
};

struct TrainingStep {
  std::vector<StageProgram> stages;
  StepSpec step{};
  SimulationOptions simulation{};

  // Of SimulationOptions::rank
  [[nodiscard]] const StageProgram& stage() const { return stages[simulation.rank / step.stage_ranks()]; }
  [[nodiscard]] const std::shared_ptr<const models::Program>& program() const {
    return stage().program_of(simulation.rank % step.stage_ranks());
  }
  /// Of its gradients, in the order of their reductions.
  [[nodiscard]] std::vector<Segment> segments() const;
  /// The ranks with which it reduces its gradients; where several groups of its stage do, most of them.
  [[nodiscard]] Communicator replicas() const;
  /// How many there are of them.
  [[nodiscard]] Rank replica_count() const;
  /// An allreduce among them.
  [[nodiscard]] CollectiveRequest allreduce_request(std::uint64_t elements, DataType type) const;

  /// Of the results of all micro-batches, which every stage holds until they are summed up: the last one what the
  /// network gives, the others zeros. 0 if there are no others.
  [[nodiscard]] Bytes result_bytes() const;
};

/// When a rank starts; with stages, which keep each other's pace, when the first one does.
[[nodiscard]] Seconds pipeline_start(const TrainingStep& training, Rank rank);

}  // namespace hcclsim::hccl
