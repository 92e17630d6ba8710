#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "hccl/parallel/compressed_plan.hpp"
#include "hccl/parallel/host_tasks.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"

/// A StepSpec holds the settings of a training step that do not depend on its network. A step in which every rank has
/// all operators and parameters (data parallelism) has one stage.
namespace hcclsim::hccl {

/// The framework whose graph is simulated. With hcom_parallel TensorFlow moves updates into a stream of their own, in
/// the order of gradients (AllReduceParallelPass of GE); in MindSpore's graph they stay after the backward pass in the
/// compute stream, in the order of parameters.
enum class Framework : std::uint8_t { tensorflow, mindspore };

struct StepSpec {
  Framework framework = Framework::tensorflow;
  Rank npus = 1;          ///< ranks: the first NPUs of the cluster; a multiple of the stages
  PipelineShape shape{};  ///< stages, and the micro-batches whose gradients are added up

  // Reductions of gradients
  /// Ranks that reduce their gradients among themselves, where users name them. Each rank is in one of the groups, or
  /// there are none: the replicas of a stage are one group.
  std::vector<Communicator> groups{};
  bool hcom_parallel = false;  ///< reductions run beside the backward pass, not after it
  bool pad_segments = false;   ///< allreduces of gradients are filled up with zeros until all ranks have equal parts
  /// Type of the weights that each replica sends to all others when it has updated them: those of the parameters whose
  /// number has its rank as remainder. None: each replica updates all of its parameters.
  std::optional<DataType> dealt{};
  std::optional<CompressionPlan> compression{};  ///< a hook in the place of reductions

  // Collectives
  Algorithm allreduce = Algorithm::automatic;
  std::vector<HierarchyLevel> levels{};  ///< of a hierarchical allreduce that is asked for; empty: HCCL's
  /// graph: tasks are loaded in advance. op: collectives go through the communicator's buffer, HCCL chooses as for
  /// single operations, and the host issues each.
  LaunchMode launch = LaunchMode::graph;
  HcclConfig config{};
  std::optional<CommReuse> comm_reuse{};  ///< operators that do the same share one; without compression

  // Hosts
  /// Eager execution: the time in which a host issues a kernel, or a collective in graph mode; none: the graph is on
  /// the device (sink).
  std::optional<Seconds> host_launch{};
  std::optional<InputOptions> input{};            ///< none: batches are there when they are needed
  std::optional<CheckpointWrites> checkpoints{};  ///< none: they take no time

  [[nodiscard]] bool has_update_stream() const { return hcom_parallel && framework == Framework::tensorflow; }
  /// Ranks that compute a stage.
  [[nodiscard]] Rank stage_ranks() const { return npus / shape.stages; }
  /// A collective of the step as these settings ask for it.
  [[nodiscard]] CollectiveRequest request_of(const Operation& operation) const;
};

}  // namespace hcclsim::hccl
