#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/loops/vector_loops.hpp"
#include "device/numerics/memory_block.hpp"
#include "device/numerics/parameter_slot.hpp"
#include "device/numerics/worker_pool.hpp"
#include "models/lowering/optimizer.hpp"

/// The optimizer as numbers: weights, gradients and every state (velocity, moments) are flat buffers of fp32. A step is
/// shared out in blocks of elements that do not depend on the number of workers, so its bits do not depend on it
/// either.
///
/// Rules, with w weight, g gradient (times its scale), d = g + weight_decay · w, η learning rate, t = 1, 2, … steps:
///   sgd       w −= η·d
///   momentum  v = µ·v + d; w −= η·v
///   nesterov  v = µ·v + d; w −= η·(d + µ·v)
///   adam      m, s moments of d; w −= η · m̂ / (√ŝ + ε), with m̂ = m / (1 − β1^t), ŝ = s / (1 − β2^t)
///   adamw     the same with moments of g, and w multiplied by 1 − η · weight_decay before
///   lars      v = µ·v + η·λ·d; w −= v, with λ = trust_coefficient · |w| / (|g| + weight_decay·|w| + ε) per tensor;
///             tensors of one dimension have λ = 1 and no decay (You et al., arXiv 1708.03888)
///   lamb      u = m̂ / (√ŝ + ε) + weight_decay · w; w −= η · |w| / |u| · u per tensor, whatever its dimension, and
///             without bounds on the ratio (You et al., arXiv 1904.00962)
/// A tensor whose weights are all zero has the ratio 1 (otherwise it would stay at zero); so has, in LAMB, a tensor
/// whose update is zero.
namespace hcclsim::device {

struct OptimizerSettings {
  models::Optimizer rule = models::Optimizer::momentum;
  double momentum = 0.9;            ///< µ
  double beta1 = 0.9;               ///< decay of the first moment
  double beta2 = 0.999;             ///< decay of the second moment
  std::optional<double> epsilon{};  ///< unset: 1e-8 (Adam, AdamW), 1e-9 (LARS), 1e-6 (LAMB)
  double weight_decay = 0;
  double trust_coefficient = 0.001;   ///< of LARS
  bool decay_norm_parameters = true;  ///< false: normalizations' parameters and biases do not decay
};

/// Throws Error(bad_input, "option") that names the first setting out of range, and its range.
void check(const OptimizerSettings& settings);

/// State of the optimizer for one set of weights. A copy is independent of the original.
class OptimizerState {
 public:
  /// State of zeros for the tensors at `slots`, which must lie one after the other from offset 0 on. Throws as check().
  OptimizerState(const OptimizerSettings& settings, std::span<const ParameterSlot> slots);

  /// One update of all weights, with `gradients` multiplied by `gradient_scale`. Both buffers are as long as the slots.
  void step(WorkerPool& workers, std::span<float> weights, std::span<const float> gradients, float gradient_scale,
            double learning_rate);

  /// Number of updates so far; the next one has t = steps() + 1.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// The state, laid out as the weights: none, velocity, or first and second moment. To be saved and restored.
  [[nodiscard]] std::vector<std::span<float>> tensors();
  void restore_steps(std::uint64_t steps) { steps_ = steps; }

  /// Memory of the state of `elements` weights.
  [[nodiscard]] static Bytes bytes(const OptimizerSettings& settings, std::uint64_t elements);

 private:
  /// A tensor as the rules see it.
  struct Tensor {
    bool one_dimensional = false;
    std::size_t first_block = 0;
    std::size_t end_block = 0;
  };
  /// A piece of one tensor: the unit in which work is shared out and sums are formed.
  struct Block {
    std::size_t offset = 0;
    std::size_t elements = 0;
    std::size_t tensor = 0;
  };
  /// The values that one step works with.
  struct Step {
    std::span<float> weights;
    std::span<const float> gradients;
    float gradient_scale = 1;
    double learning_rate = 0;
    double first_bias = 1;   ///< 1 − β1^t
    double second_bias = 1;  ///< 1 − β2^t
  };
  struct BlockPointers;

  [[nodiscard]] double decay_of(const Tensor& tensor) const;
  [[nodiscard]] UpdateFactors factors_of(const Step& step, const Tensor& tensor, double ratio) const;
  [[nodiscard]] BlockPointers pointers_of(const Step& step, const Block& block);
  [[nodiscard]] std::vector<double> trust_ratios(WorkerPool& workers, const Step& step);
  [[nodiscard]] double trust_ratio(const Step& step, const Tensor& tensor, const SquareSums& squares) const;
  void apply(const Step& step, const Block& block, double ratio);

  OptimizerSettings settings_;
  std::vector<Tensor> tensors_;
  std::vector<Block> blocks_;
  std::size_t elements_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<MemoryBlock> state_;
};

}  // namespace hcclsim::device
