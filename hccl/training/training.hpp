#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "hccl/parallel/start_up.hpp"
#include "hccl/runtime/collective/bottleneck.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/training_step.hpp"
#include "sim/cluster.hpp"
#include "sim/network/link_utilisation.hpp"
#include "sim/trace.hpp"

/// Simulates training: makes the Plan of a step and carries it out for some iterations.
namespace hcclsim::hccl {

/// A step that was simulated for some iterations. A StepView makes figures of plan and trace.
struct TimedStep {
  Plan plan;
  sim::Trace trace;
  std::vector<std::vector<Seconds>> iteration_ends;  ///< of every iteration on every rank; since the simulation began
  /// The same; with stages, of which some run ahead of others, for all ranks the latest end.
  std::vector<std::vector<Seconds>> pipeline_ends;
  std::vector<Seconds> step_times;      ///< of every rank: mean distance of successive pipeline ends but the first
  std::vector<Bottleneck> bottlenecks;  ///< of the Plan's collectives in the last iteration, as `rank` sees them
  /// In the trace's clock, of the ranks that were simulated; empty unless asked for.
  std::vector<sim::Flow> flows;
  std::optional<RankOrbits> orbits;      ///< with these flows, if some ranks stand for all
  std::uint64_t transfers = 0;           ///< all of them completed
  std::vector<FoldedClass> folded;       ///< empty: all ranks were simulated
  std::vector<std::string> idle_faults;  ///< of links over which no bytes go
};

/// The Plan that is carried out, without a simulation: that of make_plan() after the passes that the step asks for. It
/// has been proved that the Plan comes to its end.
[[nodiscard]] Plan plan_training(sim::Cluster& cluster, const device::Soc& soc, const TrainingStep& training);

/// Its step if neither links nor what is inside collectives took time, on NPUs of the speeds that the step gives,
/// beside what hosts do: no simulation of its iterations without jitter and faults has a shorter one.
[[nodiscard]] Seconds ideal_step(const Plan& plan, const device::TaskCosts& costs, const TrainingStep& training);

/// Schedules as that Plan has them; what is passed must outlive the maker.
[[nodiscard]] ScheduleMaker schedule_maker(sim::Cluster& cluster, const device::Soc& soc, const StepSpec& step);

/// One simulation; SimGrid allows one per process (base/child_process.hpp).
[[nodiscard]] TimedStep simulate_training(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                                          const TrainingStep& training);

/// TimedStep::step_times of the reported rank, without anything else that simulate_training() finds.
[[nodiscard]] Seconds simulate_step_time(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                                         const TrainingStep& training);

/// One of several jobs on a platform. Its cluster has the NPUs of the job first (sim::Cluster::of_another_job).
struct TrainingJob {
  std::string name;
  sim::Cluster& cluster;
  const device::Soc& soc;
  const device::TaskCosts& costs;
  const TrainingStep& training;
};

/// A step beside other jobs. Its figures are those of the job's own iterations: it repeats its step until all jobs have
/// done theirs, so that none is ever alone.
struct ConcurrentStep {
  TimedStep step;
  std::uint32_t steps = 0;  ///< that ended until all jobs had done theirs, the repeated ones too
  /// By LinkId: bytes of the last of its own iterations, as they load the links' capacity. Of links that other jobs
  /// load, too; where ranks are folded, others have the bytes of those that were simulated.
  std::vector<double> carried;
};

/// The jobs at the same time on the network of the first one's options. Faults are those of
/// FaultPlan::of_jobs. Every job must be able to finish when it is alone, or the others repeat their steps for ever;
/// one that stands still for good because of a fault ends all with its error.
[[nodiscard]] std::vector<ConcurrentStep> simulate_together(std::span<const TrainingJob> jobs);

/// What ranks send each other once before the first step.
[[nodiscard]] Plan plan_start_up(sim::Cluster& cluster, const device::Soc& soc, const StepSpec& step,
                                 const std::vector<StartUp>& stages);
/// The time until all have what they need.
[[nodiscard]] Seconds simulate_start_up(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                                        const TrainingStep& training, const Plan& plan);

/// The same as simulate_training() for the ends of iterations alone, which go to `use` one by one; nothing else is kept
/// of an iteration, so memory does not grow with their number. Ends when `use` wants no more, or after as many
/// iterations as the step has.
void simulate_iterations(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                         const TrainingStep& training, const IterationEnd& use);

}  // namespace hcclsim::hccl
