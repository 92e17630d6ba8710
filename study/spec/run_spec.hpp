#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/hbm.hpp"
#include "device/numerics/learning_rate.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/loss_scale.hpp"
#include "device/skew.hpp"
#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "hccl/parallel/step_spec.hpp"
#include "hccl/training/training_step.hpp"
#include "models/lowering/gradient_checks.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/lowering/precision.hpp"
#include "models/zoo/zoo.hpp"
#include "sim/faults/fault.hpp"
#include "study/platform/platform.hpp"
#include "study/spec/failure_spec.hpp"
#include "study/spec/parallel_spec.hpp"

/// A training run to be simulated: what is trained, where, and how it communicates. Every value has its type; what
/// depends on the platform or the model is checked when they are loaded (study/run/experiment/experiment.hpp).
namespace hcclsim::study {

/// What a number beyond the largest finite one becomes; automatic: as the SoC does it.
enum class OverflowRule : std::uint8_t { automatic, saturate, infinity };

/// Real gradients beside the simulated times.
struct NumericsSpec {
  // What is computed; the timed shape may be larger
  std::optional<std::uint32_t> input{};  ///< pixels per side of the image; none: numeric_graph() chooses
  std::optional<std::uint32_t> batch{};  ///< samples per NPU and step
  DataType compute = DataType::fp32;     ///< or bf16
  std::optional<DataType> round{};       ///< fp16 or bf16: type in which every operator's output is stored
  OverflowRule overflow = OverflowRule::automatic;
  std::uint64_t seed = 1;
  std::string data{};   ///< as open_dataset takes it; empty: one global batch of made samples, the same in every step
  bool shuffle = true;  ///< in every epoch, if the source is to be shuffled at all

  // How it is trained
  device::LearningRate learning_rate{0.01};
  device::OptimizerSettings optimizer{};  ///< but for its rule, which is that of the run
  double label_smoothing = 0;
  bool gradients_mean = true;
  bool mean_again = false;          ///< gradients are divided by the replicas besides
  bool loss_repeated_mean = false;  ///< the loss is that of all replicas: each one's part is divided by their number

  // What it may take of this computer
  std::uint32_t workers = 0;            ///< 0: one per processor
  std::optional<Bytes> memory_limit{};  ///< none: a part of what is free

  // What comes out
  bool check_gradients = false;
  bool plain_beside = false;          ///< the same training without compression, for its losses
  bool check_all_reductions = false;  ///< every element of the reductions that are checked, not a sample of many
  std::string save{};                 ///< file of the checkpoint; empty: none
  std::uint32_t save_every = 0;       ///< iterations; 0: at the end only
  bool save_diverged = false;         ///< a checkpoint of diverged training too
  std::string save_gradients{};       ///< file of the reduced gradients of the last iteration; empty: none
  std::string load{};
};

/// Files of MindSpore's strategies and groups; empty: none.
struct StrategyFiles {
  std::string load{};
  std::string save{};
  std::string groups{};
  bool only_trainable = true;  ///< strategies are of parameters that are trained
};

/// What it takes the host to issue a kernel that it launches by itself: what the vendor's modelling tool adds to a
/// matrix product (platforms/README.md, "Host in op mode"); it adds 2 us to a vector operator and 10 us to
/// communication, and calls these figures unconfirmed. No measurement is published.
inline constexpr Seconds assumed_host_launch = 5 * microsecond;

/// What hosts do besides.
struct HostSpec {
  bool launch_is_assumed = false;                   ///< nobody gave StepSpec::host_launch
  std::optional<double> images_per_second{};        ///< that the data workers of a server prepare; none: any number
  std::uint32_t prefetch = hccl::default_prefetch;  ///< batches that may be ready
};

using hccl::Framework;

struct RunSpec {
  /// But for its NPUs, its micro-batches and what the platform says of HCCL and of its servers.
  hccl::StepSpec step{};

  // What is trained
  models::ModelOptions model{.name = "resnet50", .batch = 32};  ///< its batch: of all micro-batches of a step
  std::string gradients_file{};                                 ///< CSV that replaces the model; empty: none
  std::vector<std::string> profiles{};  ///< measurements of any kind that study/files/profile reads
  std::string profile_model{};  ///< hash, name or graph of a model in one that holds several; empty: the only one
  models::Precision precision{};
  models::Optimizer optimizer = models::Optimizer::momentum;
  std::optional<bool> fused_attention{};  ///< none: as the SoC has it
  ParallelSpec parallel{};
  StrategyFiles strategy_files{};
  std::string parallel_mode{};  ///< of MindSpore's context; empty: there is none
  /// Its dataset_strategy, as numbers of slices along each dimension of each input; none: one part per replica.
  std::optional<std::vector<std::vector<std::uint32_t>>> dataset_cuts{};
  bool full_batch = false;              ///< its dataset_strategy: every rank reads the samples of all replicas
  bool dataset_strategy_given = false;  ///< it is not the default
  bool gradients_mean_kernels = false;  ///< reduced gradients are divided in kernels of their own, as MindSpore does
  bool mean_again = false;  ///< … by device_num besides, as in PyNative mode with the whole batch on every device
  bool parameter_broadcast = false;  ///< before the first step rank 0 sends its weights to all
  /// Calls that may be replaced by shared communication operators, 0 for none; without a number streams of the
  /// device's runtime are not counted.
  std::optional<std::uint32_t> comm_reuse{};
  hccl::GroupParallel group_parallel = hccl::GroupParallel::all;  ///< in the count of streams
  device::LossScaler loss_scale{};
  std::optional<double> clip_norm{};  ///< largest global norm of the gradients; none: they are not clipped

  // Where
  PlatformSpec platform{};
  std::optional<Rank> npus{};  ///< the first of the platform; none: all, or those of the rank table
  device::HbmCheck hbm_check = device::HbmCheck::error;

  // How it communicates
  DataType communication_type = DataType::fp32;
  std::optional<models::GradientSync> gradient_sync{};  ///< MindSpore's rules decide, in place of communication_type
  bool fp32_sums = false;  ///< MindSpore's force_fp32_communication, of collectives of operators and of results
  hccl::FallbackSplit fallback_split = hccl::FallbackSplit::vendor_default;
  std::optional<std::vector<double>> split_by_size{};
  std::optional<std::vector<std::uint32_t>> split_by_idx{};
  /// MindSpore's all_reduce_fusion_config: the last parameter of each segment, in parameter order; replaces the lists
  /// above and numbers the gradients in the reverse of that order.
  std::optional<std::vector<std::uint32_t>> fusion_index{};
  bool allow_many_segments = false;
  std::string split_group{};  ///< the group whose split is set, as in HCCL; empty: every group's
  // How it is simulated
  /// But for ranks that are traced, skew and faults: iterations, network, fold, the printed rank.
  hccl::SimulationOptions simulation{};
  device::SkewOptions skew{};
  std::vector<sim::Fault> faults{};  ///< their dates are those since the first step begins

  HostSpec host{};                        ///< what hosts do besides
  std::optional<FailureSpec> failures{};  ///< of a job that runs for days
  std::vector<std::string> notes{};       ///< what the user should know of it

  std::optional<NumericsSpec> numerics{};

  /// Whether MindSpore's compiler spreads the network: semi_auto_parallel, auto_parallel.
  [[nodiscard]] bool is_graph_parallel() const {
    return parallel_mode == "semi_auto_parallel" || parallel_mode == "auto_parallel";
  }
  /// Ranks that compute a stage.
  [[nodiscard]] Rank devices(Rank npus) const { return npus / step.shape.stages; }
  /// Devices of a stage, or groups of them that share operators, that have samples of their own.
  [[nodiscard]] Rank replicas(Rank npus) const { return devices(npus) / parallel.operators.sharing(); }
  /// Throws Error(bad_input) of kind "pipeline" or "option" if so many NPUs cannot be spread over stages and operators.
  void require_ranks(Rank npus) const;
  /// Whether every rank computes the whole network on samples of its own and keeps all parameters.
  [[nodiscard]] bool is_data_parallel() const {
    return step.shape.stages == 1 && !step.shape.forward_only && !parallel.operators.cuts() &&
           parallel.optimizer.kind == hccl::OptimizerParallelKind::off;
  }
  /// What comes between the reduction of the gradients and their update.
  [[nodiscard]] models::GradientChecks gradient_checks() const;
  /// Whether the lists of the split are set for the group of this rank.
  [[nodiscard]] bool sets_split_of(Rank of) const;
  /// The settings of the split as HCCL takes them from a rank of this group; throws Error(bad_input) for lists that it
  /// would refuse.
  [[nodiscard]] hccl::SplitStrategies split_strategies(const hccl::Communicator& group, Rank world_size) const;
};

}  // namespace hcclsim::study
