#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/role_builder.hpp"
#include "hccl/parallel/segments/fusion.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"

/// The Plan of a step whose ranks compute stages of a network, share parameters or operators, or add up gradients of
/// several micro-batches. With D ranks per stage, rank r is device r mod D of stage r / D. The devices of a stage do
/// the same, each on its part of the batch and of the operators. There is a role per stage, or one for each program
/// that its devices have.
///
/// The families of a stage are groups of its devices. Communication operators name them, and so does each parameter:
/// the ranks of a group have the same of it, and sum up its gradient. Of a network whose operators are whole there is
/// one group, the replicas of the stage.
///
/// Gradients are reduced once per step, when the last micro-batch has contributed, beside what is left of its backward
/// pass; where sums of gradients are kept in parts, once per micro-batch. Of parameters that replicas share, gradients
/// are reduced and scattered over the ranks that share them, and then, once per step, summed over the ranks that have
/// the same part. What travels together is of one family; a gradient that one rank alone contributes to is not reduced.
/// Weights are gathered at the beginning of the step in the order in which the forward pass uses them, which may begin
/// meanwhile; with ZeRO 3 for every use, one collective ahead.
namespace hcclsim::hccl {

/// What the ranks of a stage do.
struct StageProgram {
  std::shared_ptr<const models::Program> program;
  std::vector<Reduction> reductions;
  std::vector<WeightGather> gathers{};
  std::vector<DeviceGroups> families{};  ///< that the program, reductions and gathers name; none: all replicas
  /// Of each device, where the kernels of some take other times (experts/expert_places.hpp), which makes roles of them;
  /// empty: `program`, of which the others are copies.
  std::vector<std::shared_ptr<const models::Program>> of_devices{};

  [[nodiscard]] const std::shared_ptr<const models::Program>& program_of(Rank device) const {
    return of_devices.empty() ? program : of_devices[device];
  }
};

struct ParallelOptions {
  PipelineShape shape{};
  Rank ranks = 1;             ///< a multiple of the stages
  Rank shard_ranks = 1;       ///< that share a parameter if so many have it, else all that do; 1: nothing is shared
  bool overlap = true;        ///< reductions beside the backward pass
  bool pad_segments = false;  ///< allreduces are filled up with zeros until all ranks have equal parts
  bool update_stream = false;
  /// Elements of each result of a network that is not trained, in `result_type`; all stages get those of the last one.
  std::vector<std::uint64_t> results{};
  DataType result_type = DataType::fp16;
  /// Type of the weights that each replica sends to all others when it has updated them: those whose number has its
  /// rank as remainder. None: each updates all of its own.
  std::optional<DataType> dealt{};
};

[[nodiscard]] Plan parallel_plan(const std::vector<StageProgram>& stages, const ParallelOptions& options,
                                 const ScheduleMaker& make_schedule);

/// Of each parameter of a stage, the family whose groups have the same of it; ShardedGraph::no_family: one rank alone
/// has it.
using FamilyOfParameters = std::vector<std::uint32_t>;

/// Decides which gradients and which weights of a stage travel together, and numbers the gradients so that those of a
/// collective follow each other, in the order in which they are complete, and those that are not reduced come last.
/// Gradients that are reduced with each micro-batch travel together only if they are of one chunk. `mirrors`: empty:
/// all parameters are of family 0. `as_gathered`: gradients of shared parameters
/// travel together if their weights do, as MindSpore's ReduceScatter has the fusion id of the AllGather whose gradient
/// it is, unless gradients of micro-batches are added up first.
[[nodiscard]] StageProgram fuse_communication(models::Program program, const FusionRules& fusion,
                                              bool as_gathered = false, const FamilyOfParameters& mirrors = {});

}  // namespace hcclsim::hccl
