#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/learning_rate.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/loss_scale.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/compression/hook.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/numerics/checkpoint.hpp"
#include "hccl/training/numerics/compressed_reduction.hpp"
#include "hccl/training/numerics/gradient_check.hpp"
#include "hccl/training/numerics/numeric_task.hpp"
#include "hccl/training/numerics/reduction_check.hpp"
#include "hccl/training/numerics/replicas/batch_parts.hpp"
#include "hccl/training/numerics/trained_stage.hpp"
#include "models/data/dataset.hpp"
#include "models/data/sampler.hpp"
#include "models/graph.hpp"

/// Carries out a Plan with real numbers: every NPU of the simulated cluster computes forward and backward of its stage
/// on its shard of the data, stages send each other activations and gradients, the gradients are reduced along the same
/// Schedules that the simulation times, and the optimizer updates the weights, all in the order of the Plan's tasks.
/// Losses and gradients of the micro-batches of a step are added. There is no clock here; results depend neither on the
/// number of workers nor on when anything was simulated to happen.
namespace hcclsim::hccl {

struct TrainerOptions {
  unsigned workers = 0;  ///< threads; 0: as many as processors
  /// Most memory that may be taken; more is refused with Error(bad_input, "memory"). 0: no limit.
  Bytes memory_limit = 0;
  bool gradients_mean = true;  ///< × 1/N after the reduction, N: replicas of a stage
  bool mean_again = false;     ///< × 1/N besides, whether operators are cut or not
  /// The loss is that of all replicas, of which each one's is a part: 1/N of it in the backward pass. (The losses are
  /// added up by MindSpore's semi_auto_parallel and auto_parallel, and divided by VirtualDiv.)
  bool loss_repeated_mean = false;
  // Where operators are cut over the ranks of a stage, the loss is the mean over the rows of all of them, and in the
  // place of gradients_mean and loss_repeated_mean there are:
  bool mirrors_mean = false;  ///< × 1/n after the reduction, n: ranks that have the same of the parameter
  Rank added_losses = 1;      ///< so many replicas have rows of their own, whose mean losses are added up
  device::OptimizerSettings optimizer{};
  device::LearningRate learning_rate{};
  device::LossScaler loss_scale{};
  std::optional<double> clip_norm{};
  device::ComputationOptions computation{};          ///< its overflow is that of the wire too
  std::string data = "synthetic";                    ///< as open_dataset takes it
  std::shared_ptr<const models::Dataset> dataset{};  ///< what `data` names, where open_dataset does not know it
  bool shuffle = true;                               ///< epochs, where the source is to be shuffled at all
  std::uint64_t seed = 1;                            ///< of weights, synthetic data, shuffling and dropout
  /// Replicas draw their weights from seeds of their own, but for the first of each stage: as processes do that have
  /// no seed in common. Parameters of which they keep parts are drawn together.
  bool own_weights = false;
  CheckedPart checked_part = CheckedPart::sample;  ///< of a reduction that is checked
  /// Schedules of collectives inside the network, where that is computed in another size than it is timed in.
  ScheduleMaker make_schedule{};
};

/// What one training step showed.
struct IterationFigures {
  std::uint64_t iteration = 0;  ///< counted from 0 through all resumed runs
  double loss = 0;              ///< mean over all replicas of the sum over the micro-batches, without loss scale
  double accuracy = 0;          ///< fraction of all rows whose largest logit is the label
  double gradient_norm = 0;     ///< L2 norm of the reduced gradient, before clipping
  double learning_rate = 0;
  double loss_scale = 1;
  /// A number left the range of its type: on the wire, in rounded operators, or a reduced gradient that is looked at.
  /// What is not a number has not.
  bool overflow = false;
  bool skipped = false;  ///< the update was left out, for gradients were not finite
  /// Of a reduction by a compression hook: ‖reduced − mean‖ / ‖mean‖ of the gradients that the replicas computed.
  std::optional<double> compression_error{};
};

class Trainer {
 public:
  /// `graph`: the whole network with the samples of a micro-batch, of one rank or, if operators are cut over the ranks
  /// of a stage, of all of them. `stages`: what a rank of each stage of the Plan computes of it; empty if there is one
  /// stage, which computes it all. Parameters are those of the Plan's programs, batch and
  /// size of image may be others. The Plan is not needed afterwards. Throws Error(bad_input) of kind "memory", "data",
  /// "dtype", "numerics" or "option".
  Trainer(models::Graph graph, std::vector<ShardedGraph> stages, const Plan& plan, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// What replicas send each other before the first step, by a Plan of hccl/parallel/start_up.hpp.
  void start_up(const Plan& plan);

  /// One training step. With `checked`, reduction_check() tells of this step afterwards, of as much as the options say.
  IterationFigures step(bool checked);

  /// The gradients of rank 0's next batch, without loss scale, against finite differences of the loss: one entry for
  /// each of at most `parameters` parameters.
  [[nodiscard]] std::vector<GradientSample> gradient_samples(std::uint32_t parameters);

  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  [[nodiscard]] const ReductionCheck& reduction_check() const { return reduction_check_; }
  /// Over weights and the gradients of the last step, unless that failed.
  [[nodiscard]] ReplicaCheck replica_check() const;

  /// Whether all weights are finite, so that training can go on from them.
  [[nodiscard]] bool weights_finite();
  /// Throws Error(bad_input, "numerics") if a checkpoint cannot hold the state: with a hook for each of several stages.
  void require_checkpoints() const;

  /// Writes weights, optimizer state and position, in simulated time too: `ends` of the last iteration on every rank.
  /// Throws Error(bad_input, "output") if the file cannot be written, and Error(check_failed, "replicas") if the
  /// replicas differ: a checkpoint holds one copy.
  void save(const std::string& path, std::span<const Seconds> ends = {});
  /// Whether the last step has reduced all gradients: there was one, and it did not fail.
  [[nodiscard]] bool has_gradients() const { return divisor_of_step_ > 0 && step_whole_; }
  /// Writes the reduced gradients of the last step, of whole parameters, before clipping and without loss scale: a file
  /// like a checkpoint with tensors of kind "gradients". Throws as save().
  void save_gradients(const std::string& path) const;
  /// Goes on from a checkpoint. Throws Error(bad_input, "checkpoint") if it is damaged, or of a run that went on
  /// otherwise: another network, seed, optimizer, number of NPUs, batch, data or type. Settings that a user may mean to
  /// change on the way are free: learning rate, decay, clipping, segments and algorithms. Returns those of the
  /// optimizer and the loss that were changed, as changed_settings().
  std::vector<std::string> load(const std::string& path);

  [[nodiscard]] const models::Graph& graph() const { return graph_; }
  [[nodiscard]] std::size_t stages() const { return stages_.size(); }
  [[nodiscard]] const TrainedStage& stage(std::size_t role) const { return *stages_[role]; }
  [[nodiscard]] std::uint32_t micro_batches() const { return stages_.front()->micro_batches(); }
  [[nodiscard]] const models::Dataset& data() const { return *data_; }
  [[nodiscard]] bool shuffles() const { return options_.shuffle; }
  [[nodiscard]] unsigned workers() const { return pool_.workers(); }
  /// Of the gradients; null: they are summed.
  [[nodiscard]] CompressionHook<float>* compression() const;
  /// The values of a parameter of the whole network, row-major; its replicas must be equal.
  [[nodiscard]] std::vector<float> weights(std::uint32_t parameter);

 private:
  /// Where a parameter of the whole network is updated.
  struct Owner {
    std::size_t stage = 0;
    std::size_t slot = 0;
  };
  /// What is known of a step so far.
  struct Progress {
    IterationFigures figures;
    double divisor = 1;
    bool checked = false;
    bool measured = false;  // the norm
    bool finite = true;
    CompressionError compression{};
    std::optional<bool> updates{};  // whether the step may update
  };

  [[nodiscard]] Bytes needed_memory(const std::vector<StageSetup>& setups) const;
  void require_memory(const std::vector<StageSetup>& setups) const;
  void find_owners(const std::vector<ShardedGraph>& stages);
  void carry_out(const NumericTask& task, Progress& progress);
  void update(const NumericTask& task, Progress& progress);
  void measure(Progress& progress);
  void add_up_outputs(IterationFigures& figures) const;
  /// Whether operators are cut over the ranks of a stage, so that these read parts of one batch.
  [[nodiscard]] bool cut() const { return parts_.has_value(); }
  [[nodiscard]] TrainedStage::Source source(float loss_scale);
  void read_samples(Rank sampler, std::uint32_t micro_batch, models::Batch& batch) const;
  [[nodiscard]] double divisor() const;
  [[nodiscard]] Checkpoint checkpoint() const;
  /// Goes through the tensors of a checkpoint: kind by kind, and in each parameter by parameter.
  void for_each_tensor(const std::function<void(std::size_t kind, TrainedStage& stage, std::size_t slot)>& use);

  TrainerOptions options_;
  models::Graph graph_;
  Rank npus_;
  std::string wire_;                // types of the gradients in communication
  std::vector<NumericTask> tasks_;  // of a step
  std::vector<Segment> buckets_;    // of a compression hook
  device::WorkerPool pool_;
  std::shared_ptr<const models::Dataset> data_;
  std::vector<std::unique_ptr<TrainedStage>> stages_;  // of each role
  std::vector<Owner> owners_;                          // of parameters
  std::optional<BatchParts> parts_;                    // of a network whose operators are cut
  std::vector<models::Sampler> samplers_;              // of each replica, or one of all
  std::uint64_t iteration_ = 0;
  bool step_whole_ = true;      // the last one did not fail, so that all its gradients are reduced
  double divisor_of_step_ = 0;  // of its gradients, with the loss scale; 0: there was none
  ReductionCheck reduction_check_;
};

}  // namespace hcclsim::hccl
