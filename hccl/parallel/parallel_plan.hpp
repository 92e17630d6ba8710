#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hccl/parallel/fusion.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/role_builder.hpp"

/// The Plan of a step whose ranks compute stages of a network, share parameters, or add up gradients of several
/// micro-batches. With D ranks per stage, rank r computes stage r / D on its own part of the batch; the D ranks of a
/// stage are its replicas. There is a role per stage.
///
/// Gradients are reduced once per step, when the last micro-batch has contributed, beside what is left of its backward
/// pass; where sums of gradients are kept in parts, once per micro-batch. Of parameters that replicas share, gradients
/// are reduced and scattered over the ranks that share them, and then, once per step, summed over the ranks that have
/// the same part.
/// Weights are gathered at the beginning of the step in the order in which the forward pass uses them, which may begin
/// meanwhile; with ZeRO 3 for every use, one collective ahead.
namespace hcclsim::hccl {

/// What the ranks of a stage do.
struct StageProgram {
  std::shared_ptr<const models::Program> program;
  std::vector<Reduction> reductions;
  std::vector<WeightGather> gathers{};
};

struct ParallelOptions {
  PipelineShape shape{};
  Rank ranks = 1;             ///< a multiple of the stages
  Rank shard_ranks = 1;       ///< that share parameters: a divisor of the ranks of a stage; 1: nothing is shared
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

/// Decides which gradients and which weights of a stage travel together, and numbers the gradients so that those of a
/// collective follow each other, in the order in which they are complete. Gradients that are reduced with each
/// micro-batch travel together only if they are of one chunk. `as_gathered`: gradients of shared parameters
/// travel together if their weights do, as MindSpore's ReduceScatter has the fusion id of the AllGather whose gradient
/// it is, unless gradients of micro-batches are added up first.
[[nodiscard]] StageProgram fuse_communication(models::Program program, const FusionRules& fusion,
                                              bool as_gathered = false);

}  // namespace hcclsim::hccl
