#pragma once

#include <cstdint>

#include "tests/support/training/reference_net.hpp"

/// The operators of the reference network: each has a function for its output and one for its gradients. Gradients are
/// added to what is there, since a tensor with several consumers gets the sum.
namespace hcclsim::test {

/// All that an operator may read and write.
struct ReferencePass {
  const models::Graph& graph;
  const std::vector<Tensor>& parameters;
  const ReferenceBatch& batch;
  const ReferenceOptions& options;
  ReferenceStep& step;

  const Tensor& input(const models::Operator& op, std::size_t i = 0) const { return step.outputs[op.inputs[i].op]; }
  Tensor& input_slope(const models::Operator& op, std::size_t i = 0) const { return step.slopes[op.inputs[i].op]; }
  const Tensor& parameter(const models::Operator& op, std::size_t i) const { return parameters[op.parameters[i]]; }
  Tensor& gradient(const models::Operator& op, std::size_t i) const { return step.gradients[op.parameters[i]]; }
};

// Convolution and linear.
void products_forward(const ReferencePass& pass, const models::Operator& op, Tensor& out);
void products_backward(const ReferencePass& pass, const models::Operator& op, const Tensor& slope);

// Batch norm (over a channel of all images, statistics of the batch) and layer norm (over a row).
void norm_forward(const ReferencePass& pass, const models::Operator& op, Tensor& out);
void norm_backward(const ReferencePass& pass, const models::Operator& op, const Tensor& slope);

// Max and average pooling.
void pool_forward(const ReferencePass& pass, const models::Operator& op, Tensor& out);
void pool_backward(const ReferencePass& pass, const models::Operator& op, const Tensor& slope);

void attention_forward(const ReferencePass& pass, const models::Operator& op, Tensor& out);
void attention_backward(const ReferencePass& pass, const models::Operator& op, const Tensor& slope);

// Softmax cross-entropy.
void loss_forward(const ReferencePass& pass, const models::Operator& op, Tensor& out);
void loss_backward(const ReferencePass& pass, const models::Operator& op, const Tensor& slope);

/// Softmax of `count` values at `values`.
[[nodiscard]] Tensor reference_softmax(const double* values, std::size_t count);

}  // namespace hcclsim::test
