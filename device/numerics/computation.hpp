#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "device/numerics/parameter_slot.hpp"
#include "device/numerics/tensor_part.hpp"
#include "device/numerics/worker_pool.hpp"
#include "models/data/batch.hpp"
#include "models/graph.hpp"

/// Forward and backward pass of a network with real numbers, on oneDNN.
///
/// A Computation is the network prepared once: primitives, layouts, and the place of every tensor. It never changes, so
/// all workers share it. Weights hold the parameters of one or of many identical replicas. A Workspace is what one
/// worker needs to run one replica at a time: activations, their gradients, scratch. The gradients of the parameters go
/// into a flat buffer that the caller owns, one per replica.
///
/// Weights and gradients are *flat*: the parameters one after the other in *production order*, without gaps, each in
/// its *storage* layout. That is row-major for all but the weights of convolutions, which are kept as the kernels need
/// them (to_storage and to_plain convert). Element-wise work on flat buffers does not depend on it.
///
/// Types: the parameters in the flat buffer, their gradients, statistics of norms and the loss are always fp32. With
/// compute = bf16, activations, their gradients and the copies of weights that kernels read are bf16; that needs
/// AVX-512. With `round` everything is computed in fp32, on any processor, and rounded wherever a device would store it
/// as fp16 or bf16: the input, every operator's output, and every gradient, also those of parameters.
///
/// A network may have collectives in it: it is what one rank of several computes. Its passes stop before each of them;
/// the caller moves the numbers between the ranks' workspaces, and each of them goes on with the next part of its pass.
///
/// Everything runs on the calling thread alone and always gives the same bits on the same processor.
namespace hcclsim::device {

namespace onednn {
struct Plan;
class Binding;
class WeightMemory;
}  // namespace onednn

struct ComputationOptions {
  DataType compute = DataType::fp32;       ///< of activations and of their gradients: fp32 or bf16
  std::optional<DataType> round = {};      ///< fp16 or bf16, if compute is fp32
  Overflow overflow = Overflow::infinity;  ///< of `round`
  float label_smoothing = 0;               ///< part of every target that is spread evenly over the classes
};

/// Whether this processor computes in bf16.
[[nodiscard]] bool bf16_supported();

/// A part of a forward or backward pass through one chunk of a network of which a rank has several (Operator::chunk):
/// up to the first collective, from there to the next one, …
struct Pass {
  bool backward = false;
  std::uint32_t chunk = 0;
  std::uint32_t part = 0;
};

/// A collective between two parts of a pass: that of the operator, or its dual for the gradient. Blocks of a rank, as
/// a Schedule sees them, follow each other.
struct Exchange {
  models::OperatorId op = 0;
  bool gradient = false;
  std::uint32_t number = 0;  ///< of those that the operator has in this direction
  // Elements: fp32, in Workspace::sent() and received().
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  bool operator==(const Exchange&) const = default;
};

class Computation {
 public:
  /// Prepares everything, which takes tens of milliseconds for a network like ResNet50. `production_order`: all
  /// parameter indices in the order in which the backward pass completes their gradients. Throws Error(bad_input) of
  /// kind "numerics" for an operator that cannot be computed, "option" for label smoothing out of range, and "dtype"
  /// for types that cannot be combined or that this processor does not support.
  Computation(models::Graph graph, std::span<const std::uint32_t> production_order, const ComputationOptions& options);

  [[nodiscard]] const models::Graph& graph() const;
  /// One per parameter, production order.
  [[nodiscard]] std::span<const ParameterSlot> parameters() const;
  /// Of a flat buffer.
  [[nodiscard]] std::uint64_t elements() const;

  /// Whether samples or labels of a batch go into it; a stage of a pipeline may have neither.
  [[nodiscard]] bool reads_batch() const;

  /// Chunks, each with passes of its own.
  [[nodiscard]] std::uint32_t chunks() const;
  /// Of all parts of the pass: number i is between parts i and i + 1.
  [[nodiscard]] std::span<const Exchange> exchanges(Pass pass) const;

  /// What a Workspace allocates.
  [[nodiscard]] Bytes workspace_bytes() const;
  /// What Weights allocate: the flat buffer and copies in other layouts.
  [[nodiscard]] Bytes weights_bytes() const;

  /// Copies one parameter between row-major order and its storage layout. `gradient`: index in production order.
  void to_storage(std::size_t gradient, std::span<const float> plain, std::span<float> stored) const;
  void to_plain(std::size_t gradient, std::span<const float> stored, std::span<float> plain) const;

  [[nodiscard]] const std::shared_ptr<const onednn::Plan>& plan() const { return plan_; }

 private:
  std::shared_ptr<const onednn::Plan> plan_;
};

/// Parameters of one replica, or of all replicas while they are identical. A copy is independent of the original.
class Weights {
 public:
  /// All zero.
  explicit Weights(const Computation& computation);
  Weights(const Weights& other);
  Weights(Weights&& other) noexcept;
  Weights& operator=(const Weights&) = delete;
  ~Weights();

  [[nodiscard]] std::span<float> values();
  [[nodiscard]] std::span<const float> values() const;
  /// Updates the copies in other layouts; to be called after values have changed, before the next step.
  void prepare(WorkerPool& pool);

  [[nodiscard]] const onednn::WeightMemory& memory() const { return *memory_; }

 private:
  std::unique_ptr<onednn::WeightMemory> memory_;
};

/// Sets the weights that training starts from (models/initial_weights.hpp), and prepares them.
void initialise(const Computation& computation, std::uint64_t seed, WorkerPool& pool, Weights& weights);

struct StepInput {
  float loss_scale = 1;            ///< the gradients are those of loss · loss_scale
  std::uint64_t dropout_seed = 0;  ///< of the step
  std::uint64_t first_sample = 0;  ///< of the batch among all samples of the step, which dropout goes by
  /// Of each operator that draws random numbers, which part of its output in the whole network this is; empty: all.
  std::span<const TensorPart> parts{};
  /// Of each family of groups that operators name: the rank's place in its group.
  std::span<const std::uint32_t> places{};
};

struct StepOutput {
  /// Mean over the rows of the logits, not scaled, and what experts add to it that are used unevenly.
  double loss = 0;
  /// Rows whose largest logit is that of the label; of rows that several ranks have, each counts its share.
  double correct = 0;
  bool overflow = false;  ///< rounding met a number beyond the largest finite one
};

/// Runs replicas on one thread, one at a time.
class Workspace {
 public:
  explicit Workspace(const Computation& computation);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  /// Forward and backward pass of a network without collectives; writes all of `gradients` (flat). The batch must have
  /// the batch size of the graph.
  StepOutput step(const Weights& weights, const models::Batch& batch, const StepInput& input,
                  std::span<float> gradients);
  /// One pass of a step; each goes through its forward passes in ascending order of the chunks and its backward passes
  /// in descending order. A backward pass writes the gradients of its chunk's parameters, and leaves others as they
  /// are.
  StepOutput pass(Pass pass, const Weights& weights, const models::Batch& batch, const StepInput& input,
                  std::span<float> gradients);
  /// What a send has sent in the forward pass or a receive is to receive, row-major in the type of activations; in the
  /// backward pass the gradient, which goes the other way. To be filled before the pass that reads it.
  [[nodiscard]] std::span<std::byte> message(models::OperatorId op);
  // Between two parts of a pass: what goes into the collective, and what has come out of it.
  [[nodiscard]] std::span<float> sent();
  [[nodiscard]] std::span<float> received();
  /// Forward pass alone, of a network without collectives.
  StepOutput forward(const Weights& weights, const models::Batch& batch, const StepInput& input);

 private:
  std::unique_ptr<onednn::Binding> binding_;
};

}  // namespace hcclsim::device
