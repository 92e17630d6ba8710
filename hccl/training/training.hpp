#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/shared_work.hpp"
#include "base/units.hpp"
#include "device/skew.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "hccl/parallel/compressed_plan.hpp"
#include "hccl/parallel/host_tasks.hpp"
#include "hccl/parallel/parallel_plan.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "hccl/parallel/segments/segment.hpp"
#include "hccl/parallel/start_up.hpp"
#include "hccl/runtime/collective/bottleneck.hpp"
#include "hccl/runtime/fold/fold.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/settings/config.hpp"
#include "hccl/training/executor.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/link_utilisation.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// Simulates training: makes the Plan of a step and carries it out for some iterations.
namespace hcclsim::hccl {

/// Ranks that reduce their gradients among themselves, and how they split them.
struct ReplicaGroup {
  Communicator ranks;
  std::vector<Segment> segments;  ///< cover the program's gradients
};

/// How ranks get their batches.
struct InputOptions {
  InputPipeline pipeline;
  std::vector<double> samples_per_second;  ///< that the data workers of each rank prepare
};

/// Takes spans as they end, so that a trace of any length is never held as a whole.
struct SpanStream {
  std::vector<Rank> ranks;  ///< all of their spans, those inside collectives too; but for what hosts do
  std::function<void(const Plan& plan, const sim::Trace& trace, const sim::Span& span)> take;
};

struct TrainingOptions {
  Rank npus = 1;                       ///< the first NPUs of the cluster take part
  std::vector<Segment> segments{};     ///< cover the program's gradients; of `rank` if there are groups
  std::vector<ReplicaGroup> groups{};  ///< each rank is in one of them; empty: all ranks are one group
  std::uint32_t micro_batches = 1;     ///< of data parallelism
  /// Stages of a pipeline, or ranks that share parameters; empty: data parallelism.
  std::vector<StageProgram> stages{};
  PipelineShape shape{};                 ///< of the stages
  Rank shard_ranks = 1;                  ///< ranks of a stage that share parameters
  std::vector<std::uint64_t> results{};  ///< elements of what a network gives that is not trained, if all stages get it
  DataType result_type = DataType::fp16;
  std::optional<DataType>
      dealt{};  ///< type of weights of which each replica updates some, and sends them to all others
  std::optional<CompressionPlan> compression{};  ///< of the reductions of data parallelism
  std::optional<CommReuse> comm_reuse{};         ///< operators that do the same share one; without compression
  bool hcom_parallel = false;
  bool pad_segments = false;  ///< allreduces of gradients are filled up with zeros until all ranks have equal parts
  /// With hcom_parallel, updates run in a stream of their own, as TensorFlow has it; otherwise they stay in the compute
  /// stream, as in MindSpore.
  bool update_stream = true;
  Algorithm allreduce = Algorithm::automatic;
  std::vector<HierarchyLevel> levels{};  ///< of a hierarchical allreduce that is asked for; empty: HCCL's
  HcclConfig config{};
  /// graph: tasks are loaded in advance. op: collectives go through the communicator's buffer, HCCL chooses as for
  /// single operations, and the host issues each.
  LaunchMode launch = LaunchMode::graph;
  /// Eager execution: what it takes the host to issue a kernel, or a collective in graph mode; none: the graph is on
  /// the device (sink).
  std::optional<Seconds> host_launch{};
  std::optional<InputOptions> input{};            ///< none: batches are there when they are needed
  std::optional<CheckpointWrites> checkpoints{};  ///< none: they take no time
  std::uint32_t iterations = 3;
  Rank rank = 0;                               ///< whose figures are reported
  std::vector<Rank> traced{};                  ///< ranks in the trace, besides `rank`
  bool trace_tasks = false;                    ///< the trace holds the tasks inside collectives too
  std::shared_ptr<const SpanStream> stream{};  ///< null: none; the trace has what hosts of its ranks do
  bool merges_kernels =
      false;                  ///< the kernels of a task share a span in the trace, but for those of the last iteration
  bool record_flows = false;  ///< the result has the transfers of the last iteration, and what reaches into it
  sim::NetworkKind network = sim::NetworkKind::simgrid;
  Fold fold = Fold::off;
  bool hbm_contention = false;  ///< NPUs are shared (runtime/shared_npus.hpp); the network is `fluid`
  device::Skew skew{};
  std::shared_ptr<SharedWork> work{};              ///< in which iterations are counted; null: nobody asks
  std::shared_ptr<const sim::FaultPlan> faults{};  ///< of the cluster's links and these NPUs; null: none

  /// Of the results of all micro-batches, which every stage holds until they are summed up: the last one what the
  /// network gives, the others zeros. 0 if there are no others.
  [[nodiscard]] Bytes result_bytes() const;
  [[nodiscard]] bool has_update_stream() const { return hcom_parallel && update_stream; }
  /// Ranks that compute a stage.
  [[nodiscard]] Rank stage_ranks() const { return npus / shape.stages; }
  /// The ranks with which `rank` reduces its gradients; where several groups of its stage do, most of them.
  [[nodiscard]] Communicator replicas() const;
  /// How many there are of them.
  [[nodiscard]] Rank replica_count() const;
  /// An allreduce among them as these options ask for it.
  [[nodiscard]] CollectiveRequest allreduce_request(std::uint64_t elements, DataType type) const;
};

/// When a rank starts; with stages, which keep each other's pace, when the first one does.
[[nodiscard]] Seconds pipeline_start(const TrainingOptions& options, Rank rank);

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

/// The Plan that is carried out, without a simulation.
[[nodiscard]] Plan plan_training(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                                 const device::Soc& soc, const TrainingOptions& options);

/// Its step if neither links nor what is inside collectives took time, beside what hosts do: no simulation of as many
/// iterations with these options, without skew, has a shorter one.
[[nodiscard]] PlanWalk ideal_walk(const Plan& plan, const device::TaskCosts& costs, const TrainingOptions& options);

/// Schedules as that Plan has them; what is passed must outlive the maker.
[[nodiscard]] ScheduleMaker schedule_maker(sim::Cluster& cluster, const device::Soc& soc,
                                           const TrainingOptions& options);

/// One simulation; SimGrid allows one per process (base/child_process.hpp).
[[nodiscard]] TimedStep simulate_training(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                                          const device::Soc& soc, const device::TaskCosts& costs,
                                          const TrainingOptions& options);

/// TimedStep::step_times of options.rank, without anything else that simulate_training() finds.
[[nodiscard]] Seconds simulate_step_time(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                                         const device::Soc& soc, const device::TaskCosts& costs,
                                         const TrainingOptions& options);

/// One of several jobs on a platform. Its cluster has the NPUs of the job first (sim::Cluster::of_another_job).
struct TrainingJob {
  std::string name;
  sim::Cluster& cluster;
  std::shared_ptr<const models::Program> program;
  const device::Soc& soc;
  const device::TaskCosts& costs;
  TrainingOptions options{};
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
[[nodiscard]] Plan plan_start_up(sim::Cluster& cluster, const device::Soc& soc, const TrainingOptions& options,
                                 const std::vector<StartUp>& stages);
/// The time until all have what they need.
[[nodiscard]] Seconds simulate_start_up(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                                        const TrainingOptions& options, const Plan& plan);

/// The same for the ends of iterations alone, which go to `use` one by one; nothing else is kept of an iteration, so
/// memory does not grow with their number. Ends when `use` wants no more, or after options.iterations.
void simulate_iterations(sim::Cluster& cluster, const std::shared_ptr<const models::Program>& program,
                         const device::Soc& soc, const device::TaskCosts& costs, const TrainingOptions& options,
                         const IterationEnd& use);

}  // namespace hcclsim::hccl
