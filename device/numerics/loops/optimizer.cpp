#include "device/numerics/loops/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

using models::Optimizer;

/// Large enough that the cost of taking a block is negligible, small enough that all workers end at about the same
/// time.
constexpr std::size_t optimizer_block = std::size_t{64} * 1024;

double epsilon_of(const OptimizerSettings& settings) {
  if (settings.epsilon) return *settings.epsilon;
  switch (settings.rule) {
    case Optimizer::lars:
      return 1e-9;
    case Optimizer::lamb:
      return 1e-6;
    default:
      return 1e-8;
  }
}

/// Buffers of state as long as the weights.
std::size_t state_count(Optimizer rule) { return models::state_bytes_per_element(rule, {}) / sizeof(float); }

void check_fraction(std::string_view name, double value) {
  if (!(value >= 0 && value < 1)) bad_input("option", "{} is {}, must be from 0 to below 1", name, value);
}

}  // namespace

void check(const OptimizerSettings& settings) {
  check_fraction("momentum", settings.momentum);
  check_fraction("beta1", settings.beta1);
  check_fraction("beta2", settings.beta2);
  // Smaller ones are 0 in fp32, and 0 / 0 follows.
  constexpr double least_epsilon = 1e-37;
  const double epsilon = epsilon_of(settings);
  if (!(epsilon >= least_epsilon && epsilon <= 1)) {
    bad_input("option", "epsilon is {}, must be from {} to 1", epsilon, least_epsilon);
  }
  if (!(settings.weight_decay >= 0 && std::isfinite(settings.weight_decay))) {
    bad_input("option", "weight decay is {}, must be 0 or more", settings.weight_decay);
  }
  if (!(settings.trust_coefficient > 0 && std::isfinite(settings.trust_coefficient))) {
    bad_input("option", "trust coefficient is {}, must be more than 0", settings.trust_coefficient);
  }
}

OptimizerState::OptimizerState(const OptimizerSettings& settings, std::span<const ParameterSlot> slots)
    : settings_(settings) {
  check(settings);
  for (const ParameterSlot& slot : slots) {
    if (slot.offset != elements_) internal_error("{} begins at {} instead of {}", slot.name, slot.offset, elements_);
    elements_ += slot.elements;
    Tensor tensor{.one_dimensional = slot.norm_or_bias, .first_block = blocks_.size()};
    for (std::size_t done = 0; done < slot.elements; done += optimizer_block) {
      blocks_.push_back({slot.offset + done, std::min(optimizer_block, slot.elements - done), tensors_.size()});
    }
    tensor.end_block = blocks_.size();
    tensors_.push_back(tensor);
  }
  state_.reserve(state_count(settings.rule));
  for (std::size_t i = 0; i < state_count(settings.rule); ++i) state_.emplace_back(elements_ * sizeof(float));
}

void OptimizerState::step(WorkerPool& workers, std::span<float> weights, std::span<const float> gradients,
                          float gradient_scale, double learning_rate) {
  if (weights.size() != elements_ || gradients.size() != elements_) {
    internal_error("{} weights and {} gradients for an optimizer of {}", weights.size(), gradients.size(), elements_);
  }
  ++steps_;
  const auto exponent = static_cast<double>(steps_);
  const Step step{.weights = weights,
                  .gradients = gradients,
                  .gradient_scale = gradient_scale,
                  .learning_rate = learning_rate,
                  .first_bias = 1 - std::pow(settings_.beta1, exponent),
                  .second_bias = 1 - std::pow(settings_.beta2, exponent)};
  const std::vector<double> ratios = trust_ratios(workers, step);
  workers.for_each(blocks_.size(), [&](std::size_t item, unsigned) {
    const Block& block = blocks_[item];
    apply(step, block, ratios.empty() ? 1 : ratios[block.tensor]);
  });
}

std::vector<std::span<float>> OptimizerState::tensors() {
  std::vector<std::span<float>> tensors;
  for (MemoryBlock& state : state_) tensors.push_back(state.floats());
  return tensors;
}

Bytes OptimizerState::bytes(const OptimizerSettings& settings, std::uint64_t elements) {
  return state_count(settings.rule) * sizeof(float) * elements;
}

double OptimizerState::decay_of(const Tensor& tensor) const {
  if (!tensor.one_dimensional) return settings_.weight_decay;
  return settings_.decay_norm_parameters && settings_.rule != Optimizer::lars ? settings_.weight_decay : 0;
}

UpdateFactors OptimizerState::factors_of(const Step& step, const Tensor& tensor, double ratio) const {
  const auto narrow = [](double value) { return static_cast<float>(value); };
  const double decay = decay_of(tensor);
  const bool decoupled = settings_.rule == Optimizer::adamw;
  const bool adam = decoupled || settings_.rule == Optimizer::adam;
  return {.gradient_scale = step.gradient_scale,
          .decay = narrow(decoupled ? 0 : decay),
          .shrink = narrow(decoupled ? 1 - step.learning_rate * decay : 1),
          .rate = narrow(step.learning_rate * ratio / (adam ? step.first_bias : 1)),
          .momentum = narrow(settings_.momentum),
          .beta1 = narrow(settings_.beta1),
          .beta2 = narrow(settings_.beta2),
          .rest1 = narrow(1 - settings_.beta1),
          .rest2 = narrow(1 - settings_.beta2),
          .first_scale = narrow(1 / step.first_bias),
          .second_scale = narrow(1 / std::sqrt(step.second_bias)),
          .epsilon = narrow(epsilon_of(settings_))};
}

struct OptimizerState::BlockPointers {
  float* weight;
  const float* gradient;
  float* first;  ///< velocity or first moment; null if the rule has none
  float* second;
};

OptimizerState::BlockPointers OptimizerState::pointers_of(const Step& step, const Block& block) {
  const auto state = [&](std::size_t index) {
    return index < state_.size() ? state_[index].floats().data() + block.offset : nullptr;
  };
  return {step.weights.data() + block.offset, step.gradients.data() + block.offset, state(0), state(1)};
}

/// The factor on the learning rate for every tensor; empty for rules without such a factor. LAMB's moments are updated
/// here, because its ratio depends on the update that results from them.
std::vector<double> OptimizerState::trust_ratios(WorkerPool& workers, const Step& step) {
  const bool lamb = settings_.rule == Optimizer::lamb;
  if (!lamb && settings_.rule != Optimizer::lars) return {};
  std::vector<SquareSums> squares(blocks_.size());
  workers.for_each(blocks_.size(), [&](std::size_t item, unsigned) {
    const Block& block = blocks_[item];
    const BlockPointers at = pointers_of(step, block);
    squares[item] = lamb ? update_lamb_moments(block.elements, factors_of(step, tensors_[block.tensor], 1), at.gradient,
                                               at.weight, at.first, at.second)
                         : SquareSums{.weight = sum_of_squares(block.elements, at.weight),
                                      .direction = sum_of_squares(block.elements, at.gradient)};
  });
  std::vector<double> ratios;
  for (const Tensor& tensor : tensors_) {
    SquareSums sum;
    for (std::size_t block = tensor.first_block; block < tensor.end_block; ++block) {
      sum.weight += squares[block].weight;
      sum.direction += squares[block].direction;
    }
    ratios.push_back(trust_ratio(step, tensor, sum));
  }
  return ratios;
}

double OptimizerState::trust_ratio(const Step& step, const Tensor& tensor, const SquareSums& squares) const {
  const double weight = std::sqrt(squares.weight);
  const double direction = std::sqrt(squares.direction);
  if (weight == 0) return 1;
  if (settings_.rule == Optimizer::lamb) return direction == 0 ? 1 : weight / direction;
  if (tensor.one_dimensional) return 1;
  const double gradient = direction * std::abs(step.gradient_scale);
  return settings_.trust_coefficient * weight / (gradient + decay_of(tensor) * weight + epsilon_of(settings_));
}

void OptimizerState::apply(const Step& step, const Block& block, double ratio) {
  const UpdateFactors factors = factors_of(step, tensors_[block.tensor], ratio);
  const BlockPointers at = pointers_of(step, block);
  switch (settings_.rule) {
    case Optimizer::sgd:
      return apply_sgd(block.elements, factors, at.gradient, at.weight);
    case Optimizer::momentum:
      return apply_momentum(block.elements, factors, at.gradient, at.weight, at.first);
    case Optimizer::nesterov:
      return apply_nesterov(block.elements, factors, at.gradient, at.weight, at.first);
    case Optimizer::adam:
    case Optimizer::adamw:
      return apply_adam(block.elements, factors, at.gradient, at.weight, at.first, at.second);
    case Optimizer::lars:
      return apply_lars(block.elements, factors, at.gradient, at.weight, at.first);
    case Optimizer::lamb:
      return apply_lamb(block.elements, factors, at.first, at.second, at.weight);
  }
}

}  // namespace hcclsim::device
