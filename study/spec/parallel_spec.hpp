#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/segments/fusion.hpp"
#include "hccl/parallel/segments/fusion_ids.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "study/spec/search_mode.hpp"

/// How a step is spread over ranks and over time, beyond one micro-batch on every NPU.
namespace hcclsim::study {

/// Samples of a step.
struct BatchSizes {
  std::uint32_t micro_batch = 0;
  std::uint32_t micro_batches = 1;
};

/// What devices read of the samples of a batch, where that is told (MindSpore's dataset_strategy).
struct DatasetParts {
  enum class Kind : std::uint8_t {
    whole,    ///< each reads all of them
    samples,  ///< each reads samples of its own
    axes,     ///< in so many parts along each axis; copies have the devices on the left
  };
  Kind kind = Kind::whole;
  std::vector<std::uint32_t> axes{};

  bool operator==(const DatasetParts&) const = default;
};

/// How operators are cut over the devices of a stage: rank = stage, then the part of the samples, then the part of the
/// operators, which varies fastest.
struct OperatorParallel {
  std::uint32_t model = 1;              ///< devices that share the operators of a layer: its heads and its features
  std::optional<std::uint32_t> data{};  ///< devices that have samples of their own, to be checked against the others
  std::uint32_t context = 1;            ///< devices, or groups of these, that share the positions of every sequence
  hccl::ContextKind context_kind = hccl::ContextKind::ulysses;  ///< how their attention meets all positions
  bool sequence = false;    ///< what the devices would compute alike between these operators, they share by rows
  bool vocabulary = false;  ///< they share the table of tokens, the logits and the loss
  bool all_to_all = false;  ///< a cut moves from one axis to another by an all-to-all (MindSpore's enable_alltoall)
  std::string strategy{};   ///< file of strategies of single operators, which count before all of these; empty: none
  /// Checkpoint of strategies for operators that have none from anywhere else (MindSpore's load_file); empty: none.
  std::string loaded{};
  hccl::StrategyMap found{};  ///< strategies that a search has found, which count before the file
  /// The search that gives strategies to operators without one (MindSpore's auto_parallel); none: they are batch
  /// parallel.
  std::optional<StrategySearchMode> search{};
  /// What devices read where operators are cut; none: what the operators need.
  std::optional<DatasetParts> dataset{};
  bool loss_repeated_mean = true;  ///< the loss of devices with the same rows is divided by their number
  bool dataset_cuts = false;       ///< in another way than samples of its own for every device
  /// Where no operator is cut, batch norms take the statistics of the samples of all devices, as where some are: what
  /// MindSpore's compiler makes of them.
  bool common_statistics = false;

  /// Devices with rows of their own that share the experts of a layer: a divisor of their number.
  std::uint32_t experts = 1;
  /// Devices that share each expert by its features: as many as share other operators (none), or 1.
  std::optional<std::uint32_t> expert_model{};
  double expert_skew = 0;  ///< how unevenly dropless experts are used (hccl::ExpertSkew)
  std::uint64_t expert_seed = 1;

  /// Whether devices that share other operators have experts as wholes, for rows of their own.
  [[nodiscard]] bool whole_experts() const { return model > 1 && expert_model == 1U; }
  /// Devices that share the operators of a layer in either way.
  [[nodiscard]] std::uint32_t sharing() const { return model * context; }
  [[nodiscard]] bool has_files() const { return !strategy.empty() || !loaded.empty(); }
  [[nodiscard]] bool cuts() const {
    return sharing() > 1 || experts > 1 || has_files() || !found.empty() || search.has_value() || dataset_cuts;
  }

  bool operator==(const OperatorParallel&) const = default;
};

struct ParallelSpec {
  // The micro-batches of a step follow from what is given of these:
  bool batch_given = false;  ///< RunSpec::model has the samples that a replica trains on in a step
  std::optional<std::uint32_t> micro_batches{};
  const char* micro_batches_option = "--micro-batches";  ///< that has given them
  std::optional<std::uint32_t> micro_batch_size{};       ///< samples
  std::optional<std::uint32_t> global_batch{};           ///< samples of all replicas in a step
  std::vector<std::uint32_t> stage_layers{};             ///< of each part of a pipeline; empty: the same number for all
  bool balanced = false;  ///< in place of these: so that the step is short (study/run/experiment/balanced_stages.hpp)
  OperatorParallel operators{};
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
  bool result_broadcast = false;             ///< all stages get what a network gives that is not trained
  bool causal_flops = false;                 ///< MFU counts half of the operations of causal attention

  /// With `replicas` of the network, and `batch` samples for each unless something else says so. Throws
  /// Error(bad_input) of kind "value-error" if parts are not equal, "option" if sizes contradict each other.
  [[nodiscard]] BatchSizes batch_sizes(std::uint32_t batch, Rank replicas) const;
};

}  // namespace hcclsim::study
