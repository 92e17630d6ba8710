#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/graph.hpp"

/// Forward and backward pass of any network in double precision with plain loops, one operator after the other: slow,
/// and simple enough to be believed. The kernels of device/numerics are compared with it.
///
/// All tensors are row-major: NCHW for images, rows × features for matrices, and as the graph says for parameters.
namespace hcclsim::test {

using Tensor = std::vector<double>;

struct ReferenceBatch {
  Tensor inputs;                     ///< images or feature vectors; empty for a network of tokens
  std::vector<std::int32_t> tokens;  ///< sequences × length; empty for others
  std::vector<std::int32_t> labels;  ///< one per row of the logits
};

struct ReferenceOptions {
  double label_smoothing = 0;
  double loss_scale = 1;  ///< gradients are those of the loss times this
  /// Whether an element of a dropout operator's output is kept; unset: all are, and nothing is scaled.
  std::function<bool(models::OperatorId op, std::uint64_t element)> keeps = {};
  /// Applied to the inputs, to every operator's output but the loss, and to every gradient; unset: nothing is.
  std::function<double(double)> round = {};
};

struct ReferenceStep {
  double loss = 0;
  std::uint32_t correct = 0;      ///< rows whose largest logit is the label
  std::vector<Tensor> outputs;    ///< per operator; of the loss: one element
  std::vector<Tensor> slopes;     ///< per operator: gradient of the loss by its output
  std::vector<Tensor> gradients;  ///< per parameter, in parameter order
};

/// Loss of the batch and all gradients. `parameters` are in parameter order.
[[nodiscard]] ReferenceStep reference_step(const models::Graph& graph, const std::vector<Tensor>& parameters,
                                           const ReferenceBatch& batch, const ReferenceOptions& options = {});

}  // namespace hcclsim::test
