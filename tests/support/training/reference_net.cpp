#include "tests/support/training/reference_net.hpp"

#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/training/reference_layers.hpp"

namespace hcclsim::test {
namespace {

using models::Operator;
using models::OperatorId;
using models::OperatorKind;

/// Argument of the hyperbolic tangent in GELU's usual approximation, x · (1 + tanh(z)) / 2.
double gelu_argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }

double activation(OperatorKind kind, double x) {
  if (kind == OperatorKind::gelu) return x * (1 + std::tanh(gelu_argument(x))) / 2;
  return std::fmax(0, kind == OperatorKind::relu6 ? std::fmin(x, 6) : x);
}

double activation_slope(OperatorKind kind, double x) {
  if (kind == OperatorKind::gelu) {
    const double tangent = std::tanh(gelu_argument(x));
    const double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
    return (1 + tangent) / 2 + x * (1 - tangent * tangent) * slope / 2;
  }
  return x > 0 && (kind != OperatorKind::relu6 || x < 6) ? 1 : 0;
}

/// Factor of an element of a dropout operator.
double dropout_factor(const ReferencePass& pass, OperatorId id, std::size_t element) {
  if (!pass.options.keeps) return 1;
  return pass.options.keeps(id, element) ? 1 / (1 - static_cast<double>(pass.graph.operators[id].drop_rate)) : 0;
}

/// Calls visit(output element, element of the table) for every element that an embedding takes from its table.
template <typename Visit>
void each_embedded(const ReferencePass& pass, const Operator& op, Visit visit) {
  const std::size_t features = op.shape().channels();
  for (std::size_t row = 0; row < op.shape().batch(); ++row) {
    const std::size_t entry =
        op.kind == OperatorKind::token_embedding ? static_cast<std::size_t>(pass.batch.tokens[row]) : row % op.sequence;
    for (std::size_t i = 0; i < features; ++i) visit(row * features + i, entry * features + i);
  }
}

void forward(const ReferencePass& pass, OperatorId id) {
  const Operator& op = pass.graph.operators[id];
  Tensor& out = pass.step.outputs[id];
  switch (op.kind) {
    case OperatorKind::input:
      if (!pass.batch.inputs.empty()) out = pass.batch.inputs;
      return;
    case OperatorKind::convolution:
    case OperatorKind::linear:
      return products_forward(pass, op, out);
    case OperatorKind::batch_norm:
    case OperatorKind::layer_norm:
      return norm_forward(pass, op, out);
    case OperatorKind::relu:
    case OperatorKind::relu6:
    case OperatorKind::gelu:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = activation(op.kind, pass.input(op)[i]);
      return;
    case OperatorKind::max_pool:
    case OperatorKind::average_pool:
      return pool_forward(pass, op, out);
    case OperatorKind::add:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = pass.input(op, 0)[i] + pass.input(op, 1)[i];
      return;
    case OperatorKind::flatten:
      out = pass.input(op);
      return;
    case OperatorKind::dropout:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = pass.input(op)[i] * dropout_factor(pass, id, i);
      return;
    case OperatorKind::position_embedding:
      out = pass.input(op);
      [[fallthrough]];
    case OperatorKind::token_embedding:
      return each_embedded(pass, op, [&](std::size_t o, std::size_t t) { out[o] += pass.parameter(op, 0)[t]; });
    case OperatorKind::attention:
      return attention_forward(pass, op, out);
    case OperatorKind::loss:
      return loss_forward(pass, op, out);
    default:
      throw std::invalid_argument("the reference computes no operators of kind " + std::string(name_of(op.kind)));
  }
}

void backward(const ReferencePass& pass, OperatorId id) {
  const Operator& op = pass.graph.operators[id];
  const Tensor& slope = pass.step.slopes[id];
  const auto add_to_input = [&](std::size_t input, auto factor) {
    for (std::size_t i = 0; i < slope.size(); ++i) pass.input_slope(op, input)[i] += slope[i] * factor(i);
  };
  const auto one = [](std::size_t) { return 1.0; };
  switch (op.kind) {
    case OperatorKind::input:
      return;
    case OperatorKind::convolution:
    case OperatorKind::linear:
      return products_backward(pass, op, slope);
    case OperatorKind::batch_norm:
    case OperatorKind::layer_norm:
      return norm_backward(pass, op, slope);
    case OperatorKind::relu:
    case OperatorKind::relu6:
    case OperatorKind::gelu:
      return add_to_input(0, [&](std::size_t i) { return activation_slope(op.kind, pass.input(op)[i]); });
    case OperatorKind::max_pool:
    case OperatorKind::average_pool:
      return pool_backward(pass, op, slope);
    case OperatorKind::add:
      add_to_input(0, one);
      return add_to_input(1, one);
    case OperatorKind::flatten:
      return add_to_input(0, one);
    case OperatorKind::dropout:
      return add_to_input(0, [&](std::size_t i) { return dropout_factor(pass, id, i); });
    case OperatorKind::position_embedding:
      add_to_input(0, one);
      [[fallthrough]];
    case OperatorKind::token_embedding:
      return each_embedded(pass, op, [&](std::size_t o, std::size_t t) { pass.gradient(op, 0)[t] += slope[o]; });
    case OperatorKind::attention:
      return attention_backward(pass, op, slope);
    case OperatorKind::loss:
      return loss_backward(pass, op, slope);
    default:
      throw std::invalid_argument("the reference computes no operators of kind " + std::string(name_of(op.kind)));
  }
}

void round(const ReferencePass& pass, Tensor& values) {
  if (!pass.options.round) return;
  for (double& value : values) value = pass.options.round(value);
}

/// Backward pass of an operator, with what it adds to gradients rounded by itself and again in the sum.
void rounded_backward(const ReferencePass& pass, OperatorId id) {
  const Operator& op = pass.graph.operators[id];
  std::set<OperatorId> inputs;
  for (const models::Value input : op.inputs) inputs.insert(input.op);
  std::map<OperatorId, Tensor> before;
  for (const OperatorId input : inputs) {
    Tensor& slope = pass.step.slopes[input];
    before[input] = std::exchange(slope, Tensor(slope.size(), 0.0));
  }
  backward(pass, id);
  for (const OperatorId input : inputs) {
    Tensor& slope = pass.step.slopes[input];
    round(pass, slope);
    for (std::size_t i = 0; i < slope.size(); ++i) slope[i] += before[input][i];
    round(pass, slope);
  }
  for (const std::uint32_t parameter : op.parameters) round(pass, pass.step.gradients[parameter]);
}

}  // namespace

ReferenceStep reference_step(const models::Graph& graph, const std::vector<Tensor>& parameters,
                             const ReferenceBatch& batch, const ReferenceOptions& options) {
  ReferenceStep step;
  for (const Operator& op : graph.operators) step.outputs.emplace_back(op.shape().elements(), 0.0);
  for (const models::Parameter& parameter : graph.parameters) step.gradients.emplace_back(parameter.elements, 0.0);
  step.slopes = step.outputs;
  step.slopes.back() = {options.loss_scale};
  const ReferencePass pass{graph, parameters, batch, options, step};
  const auto count = static_cast<OperatorId>(graph.operators.size());
  for (OperatorId id = 0; id < count; ++id) {
    forward(pass, id);
    if (id + 1 < count) round(pass, step.outputs[id]);
  }
  for (OperatorId id = count; id-- > 0;) rounded_backward(pass, id);
  step.loss = step.outputs.back().front();
  return step;
}

}  // namespace hcclsim::test
