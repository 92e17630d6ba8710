#pragma once

#include <cstddef>
#include <span>

/// Mixtures of experts with real numbers. Rows choose experts by their gates: a gate of 0 says no. The rows of an
/// expert are in their order, and those beyond its capacity are dropped: they add nothing to what is combined. `slopes`
/// are the gradients of the output.
namespace hcclsim::device {

struct Routing {
  std::size_t experts = 1;
  std::size_t top_k = 1;      ///< gates that are kept, the greatest; of equal ones the first
  bool normalised = false;    ///< they are divided by their sum
  std::size_t sequence = 1;   ///< rows in which the use of experts is looked at
  float balance_weight = 0;   ///< of the loss of uneven use
  float gradient_factor = 1;  ///< on the gradient of that loss
};

/// `probabilities`: softmax of the logits of every row; `gates`: those that are kept, else 0. Returns the loss of
/// uneven use, the mean over sequences of weight · experts · Σ f·p with f the part of the sequence's choices that an
/// expert has, and p the mean of its probabilities (Fedus et al., "Switch Transformers"; per sequence as DeepSeek-V2).
double route(const Routing& routing, std::span<const float> logits, std::span<float> probabilities,
             std::span<float> gates);
/// `loss_scale`: factor on the gradient of the loss of uneven use, whose f are constants.
void route_gradient(const Routing& routing, std::span<const float> probabilities, std::span<const float> gates,
                    std::span<const float> slopes, float loss_scale, std::span<float> logit_gradient);

/// What rows and experts exchange: rows × features here, experts × capacity × features there.
struct ExpertRows {
  std::size_t rows = 0;
  std::size_t features = 0;
  std::size_t experts = 0;
  std::size_t capacity = 0;
  std::size_t groups = 1;  ///< of rows, such as sequences: each has a part of the places of every expert
};

/// Places that nobody takes are 0.
void dispatch_rows(const ExpertRows& form, std::span<const float> in, std::span<const float> gates,
                   std::span<float> out);
void dispatch_rows_gradient(const ExpertRows& form, std::span<const float> gates, std::span<const float> slopes,
                            std::span<float> in_gradient);

/// The sum over experts of gate times row.
void combine_rows(const ExpertRows& form, std::span<const float> in, std::span<const float> gates,
                  std::span<float> out);
void combine_rows_gradient(const ExpertRows& form, std::span<const float> in, std::span<const float> gates,
                           std::span<const float> slopes, std::span<float> in_gradient, std::span<float> gate_gradient);

}  // namespace hcclsim::device
