#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/parallel/fusion.hpp"
#include "hccl/parallel/fusion_ids.hpp"
#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/recompute.hpp"

/// How a step is spread over ranks and over time, beyond one micro-batch on every NPU.
namespace hcclsim::study {

/// Samples of a step.
struct BatchSizes {
  std::uint32_t micro_batch = 0;
  std::uint32_t micro_batches = 1;
};

struct ParallelSpec {
  hccl::PipelineShape shape{};  ///< but for its micro-batches, which follow from what is given of these:
  bool batch_given = false;     ///< RunSpec::model has the samples that a replica trains on in a step
  std::optional<std::uint32_t> micro_batches{};
  const char* micro_batches_option = "--micro-batches";  ///< that has given them
  std::optional<std::uint32_t> micro_batch_size{};       ///< samples
  std::optional<std::uint32_t> global_batch{};           ///< samples of all replicas in a step
  std::vector<std::uint32_t> stage_layers{};             ///< of each part of a pipeline; empty: the same number for all
  bool balanced = false;  ///< in place of these: so that the step is short (study/balanced_stages.hpp)
  hccl::OptimizerParallel optimizer{};
  std::optional<bool> accumulation_shard{};  ///< sums of gradients are kept in parts; none: off
  hccl::Recompute recompute{};
  // Of recomputed layers:
  bool parallel_optimizer_comm_recompute = false;  ///< their weights are gathered again, not kept
  bool mp_comm_recompute = true;                   ///< their collectives are repeated; else their outputs are kept
  bool recompute_slice_activation = false;         ///< ranks that share an operator keep a part of their inputs each
  /// Of the collectives of a pipeline or of shared parameters, none: 64 MB. Else of MindSpore's gradients, none: as
  /// they are split otherwise.
  std::optional<hccl::FusionRules> fusion{};
  std::vector<hccl::FusionId> fusion_ids{};  ///< MindSpore's set_comm_fusion
  bool forward_only = false;                 ///< the network is applied, not trained
  bool result_broadcast = false;             ///< then all stages get what it gives
  bool causal_flops = false;                 ///< MFU counts half of the operations of causal attention

  /// With `replicas` of the network, and `batch` samples for each unless something else says so. Throws
  /// Error(bad_input) of kind "value-error" if parts are not equal, "option" if sizes contradict each other.
  [[nodiscard]] BatchSizes batch_sizes(std::uint32_t batch, Rank replicas) const;

  /// Whether ranks differ in what they compute or keep.
  [[nodiscard]] bool has_stages() const {
    return shape.stages > 1 || optimizer.kind != hccl::OptimizerParallelKind::off || forward_only;
  }
};

}  // namespace hcclsim::study
