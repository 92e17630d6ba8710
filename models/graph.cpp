#include "models/graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"

namespace hcclsim::models {
namespace {

/// Sum over the `out` windows of an adaptive pooling of `in` pixels: window i spans floor(i·in/out) …
/// ceil((i+1)·in/out).
std::uint64_t adaptive_reads(std::uint64_t in, std::uint64_t out) {
  std::uint64_t reads = 0;
  for (std::uint64_t i = 0; i < out; ++i) reads += ((i + 1) * in + out - 1) / out - i * in / out;
  return reads;
}

std::uint64_t average_pool_reads(const Shape& in, const Shape& out) {
  return std::uint64_t{out.batch()} * out.channels() * adaptive_reads(in.height(), out.height()) *
         adaptive_reads(in.width(), out.width());
}

/// Multiply-adds of a convolution or a linear operator: its output elements times the weights behind each of them.
Flops multiply_adds(const Graph& graph, const Operator& op) {
  return static_cast<Flops>(op.shape().elements()) * static_cast<Flops>(weights_per_output(graph, op));
}

/// Mean of the multiply-adds of attention's two products, which meet every score with the features of one head: of its
/// keys and of its values. The positions of a sequence are those of the whole group.
Flops attention_multiply_adds(const Operator& op) {
  const std::uint64_t features = std::uint64_t{value_width(op)} + key_width(op);
  return static_cast<Flops>(attention_scores(op)) * static_cast<Flops>(features) / 2;
}

Flops product_multiply_adds(const Operator& op) {
  const MatrixProduct& product = op.product;
  return static_cast<Flops>(product.m) * static_cast<Flops>(product.n) * static_cast<Flops>(product.k) *
         static_cast<Flops>(product.groups);
}

bool is_product(OperatorKind kind) {
  return kind == OperatorKind::convolution || kind == OperatorKind::linear || kind == OperatorKind::expert_linear;
}

/// Elements of all heads that rotary positions turn.
Flops turned_elements(const Operator& op) {
  const std::uint64_t all = op.shape().elements();
  return static_cast<Flops>(op.turned == 0 ? all : std::uint64_t{op.shape().batch()} * op.heads * op.turned);
}

/// The part of the places of experts that rows can take, if none are dropped.
double taken_places(const Graph& graph, const Operator& op) {
  const Operator& gates = route_of(graph, op);
  const double rows = static_cast<double>(gates.shape().batch()) * gates.top_k;
  return std::min(1.0, rows / (static_cast<double>(op.shape().size(0)) * op.shape().size(1)));
}

/// Of all that an operator reads.
Flops inputs_elements(const Graph& graph, const Operator& op) {
  Flops elements = 0;
  for (const Value input : op.inputs) elements += static_cast<Flops>(graph.tensor(input).shape.elements());
  return elements;
}

}  // namespace

std::string_view name_of(Activation activation) {
  return activation == Activation::silu ? "silu" : activation == Activation::gelu ? "gelu" : "relu";
}

std::string_view name_of(OperatorKind kind) {
  static constexpr std::array<std::string_view, 52> names{"input",
                                                          "convolution",
                                                          "batch_norm",
                                                          "relu",
                                                          "relu6",
                                                          "max_pool",
                                                          "average_pool",
                                                          "add",
                                                          "bias",
                                                          "flatten",
                                                          "linear",
                                                          "dropout",
                                                          "gelu",
                                                          "swiglu",
                                                          "tanh",
                                                          "layer_norm",
                                                          "rms_norm",
                                                          "token_embedding",
                                                          "position_embedding",
                                                          "segment_embedding",
                                                          "class_token",
                                                          "rotary",
                                                          "attention",
                                                          "select_rows",
                                                          "patches",
                                                          "join_rows",
                                                          "sum_rows",
                                                          "factorization",
                                                          "join_heads",
                                                          "repeat_heads",
                                                          "route",
                                                          "dispatch",
                                                          "expert_linear",
                                                          "combine",
                                                          "loss",
                                                          "binary_loss",
                                                          "split",
                                                          "concat",
                                                          "slice",
                                                          "pad",
                                                          "reshape",
                                                          "vector",
                                                          "product",
                                                          "all_reduce",
                                                          "all_gather",
                                                          "reduce_scatter",
                                                          "all_to_all",
                                                          "broadcast",
                                                          "neighbour_exchange",
                                                          "host_copy",
                                                          "send",
                                                          "receive"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(InputKind kind) {
  static constexpr std::array<std::string_view, 3> names{"features", "images", "tokens"};
  return names[static_cast<std::size_t>(kind)];
}

std::uint64_t Graph::parameter_elements() const {
  std::uint64_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.elements;
  return sum;
}

std::uint64_t Graph::active_parameter_elements() const {
  std::uint64_t sum = 0;
  for (const Parameter& parameter : parameters) {
    const Operator& owner = operators[parameter.owner];
    if (owner.kind == OperatorKind::expert_linear) {
      const Operator& gates = route_of(*this, owner);
      sum += parameter.elements / gates.shape().channels() * gates.top_k;
    } else {
      sum += parameter.elements;
    }
  }
  return sum;
}

std::uint32_t Graph::label_rows() const {
  std::uint32_t rows = 0;
  for (const Value logits : operators.back().inputs) rows += tensor(logits).shape.batch();
  return rows;
}

std::uint64_t Graph::trained_elements() const {
  std::uint64_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.frozen ? 0 : parameter.elements;
  return sum;
}

bool Graph::trains(const Operator& op) const {
  return std::ranges::any_of(op.parameters, [&](std::uint32_t parameter) { return !parameters[parameter].frozen; });
}

std::vector<bool> Graph::needs_gradient() const {
  std::vector<bool> needs(operators.size(), false);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    // Whole numbers have no gradient.
    const auto received = [](const Operator& op) {
      return op.kind == OperatorKind::receive && op.outputs[0].dtype >= DataType::fp16 && op.peer.returns;
    };
    needs[i] = trains(operators[i]) || received(operators[i]);
    for (const Value input : operators[i].inputs) needs[i] = needs[i] || needs[input.op];
  }
  return needs;
}

std::vector<std::uint32_t> Graph::first_values() const {
  std::vector<std::uint32_t> first{0};
  first.reserve(operators.size() + 1);
  for (const Operator& op : operators) first.push_back(first.back() + static_cast<std::uint32_t>(op.outputs.size()));
  return first;
}

std::vector<std::uint32_t> Graph::consumer_counts() const {
  const std::vector<std::uint32_t> first = first_values();
  std::vector<std::uint32_t> counts(first.back(), 0);
  for (const Operator& op : operators) {
    for (const Value input : op.inputs) ++counts[first[input.op] + input.output];
  }
  return counts;
}

std::uint64_t weights_per_output(const Graph& graph, const Operator& op) {
  const Parameter& weight = graph.parameters[op.parameters.front()];
  return op.kind == OperatorKind::expert_linear ? weight.shape.back() : weight.elements / op.shape().channels();
}

const Operator& route_of(const Graph& graph, const Operator& op) {
  const Operator* before = &op;
  while (before->kind != OperatorKind::dispatch) {
    if (before->inputs.empty()) internal_error("{} is not behind a dispatch", op.name);
    before = &graph.operators[before->inputs.front().op];
  }
  return graph.operators[before->inputs.back().op];
}

std::uint32_t expert_capacity(std::uint64_t tokens, std::uint32_t experts, std::uint32_t top_k, double factor) {
  const double even = static_cast<double>(tokens) * top_k / experts;
  if (!(factor > 0 && factor * even < 0x1p24)) {
    bad_input("model", "the capacity of experts must be above 0, and give less than {} rows to each, got {}", 1U << 24U,
              factor);
  }
  return static_cast<std::uint32_t>(std::ceil(factor * even));
}

std::uint64_t attention_scores(const Operator& op) {
  return std::uint64_t{op.shape().batch()} * op.sequence * op.group.ranks * op.heads;
}

Flops product_flops(const Graph& graph, const Operator& op, bool causal) {
  if (op.kind == OperatorKind::expert_linear) return 2 * multiply_adds(graph, op) * taken_places(graph, op);
  if (op.kind == OperatorKind::product) return 2 * product_multiply_adds(op);
  if (is_product(op.kind)) return 2 * multiply_adds(graph, op);
  if (op.kind == OperatorKind::attention) return op.met * (causal && op.causal ? 2 : 4) * attention_multiply_adds(op);
  return 0;
}

Flops model_flops(const Graph& graph, bool causal) {
  Flops sum = 0;
  for (const Operator& op : graph.operators) sum += product_flops(graph, op, causal);
  return sum;
}

std::uint32_t activation_flops(Activation activation) {
  constexpr std::uint32_t of_silu = 5;
  constexpr std::uint32_t of_gelu = 9;
  return activation == Activation::silu ? of_silu : activation == Activation::gelu ? of_gelu : 1;
}

std::uint32_t activation_slope_flops(Activation activation) {
  constexpr std::uint32_t of_silu = 11;
  constexpr std::uint32_t of_gelu = 17;
  return activation == Activation::silu ? of_silu : activation == Activation::gelu ? of_gelu : 2;
}

Flops forward_flops(const Graph& graph, const Operator& op) {
  if (op.kind == OperatorKind::send) return 0;  // it has no output
  const auto outputs = static_cast<Flops>(op.shape().elements());
  switch (op.kind) {
    case OperatorKind::convolution:
    case OperatorKind::linear:
    case OperatorKind::expert_linear:
      return 2 * multiply_adds(graph, op);
    case OperatorKind::batch_norm:
    case OperatorKind::layer_norm:
      return 7 * outputs;
    case OperatorKind::vector:
      return static_cast<Flops>(op.work.forward);
    case OperatorKind::product:
      return 2 * product_multiply_adds(op);
    case OperatorKind::gelu:
      return 9 * outputs;
    case OperatorKind::rms_norm:
      return 4 * outputs;
    case OperatorKind::swiglu:
      return (activation_flops(op.activation) + 1) * outputs;
    case OperatorKind::rotary:
      return 3 * turned_elements(op);
    case OperatorKind::route:
      return (5 + op.top_k) * outputs;
    case OperatorKind::combine:
      return 2 * static_cast<Flops>(graph.input_of(op).elements());
    case OperatorKind::attention:
      return 4 * attention_multiply_adds(op) + (op.drop_rate > 0 ? 7 : 6) * static_cast<Flops>(attention_scores(op));
    case OperatorKind::factorization:
      return 3 * static_cast<Flops>(graph.input_of(op).elements());
    case OperatorKind::sum_rows:
      return static_cast<Flops>(graph.input_of(op).elements());
    case OperatorKind::max_pool:
      return op.window.area() * outputs;
    case OperatorKind::average_pool:
      return static_cast<Flops>(average_pool_reads(graph.input_of(op), op.shape()));
    case OperatorKind::loss:
      return 5 * inputs_elements(graph, op);
    case OperatorKind::binary_loss:
      return 6 * inputs_elements(graph, op);
    case OperatorKind::tanh:
    case OperatorKind::segment_embedding:
    case OperatorKind::relu:
    case OperatorKind::relu6:
    case OperatorKind::add:
    case OperatorKind::bias:
    case OperatorKind::dropout:
    case OperatorKind::token_embedding:
    case OperatorKind::position_embedding:
      return outputs;
    default:  // nothing is computed
      return 0;
  }
}

Flops backward_flops(const Graph& graph, const Operator& op, bool input_needs_gradient) {
  if (op.kind == OperatorKind::send) return 0;
  const auto outputs = static_cast<Flops>(op.shape().elements());
  switch (op.kind) {
    case OperatorKind::convolution:
    case OperatorKind::linear:
    case OperatorKind::expert_linear:
      return (input_needs_gradient ? 4 : 2) * multiply_adds(graph, op);
    case OperatorKind::batch_norm:
      return 11 * outputs;
    case OperatorKind::layer_norm:
      return (input_needs_gradient ? 15 : 5) * outputs;
    case OperatorKind::vector:
      return static_cast<Flops>(op.work.backward);
    case OperatorKind::product:
      return (op.parameters.empty() || input_needs_gradient ? 4 : 2) * product_multiply_adds(op);
    case OperatorKind::gelu:
      return 17 * outputs;
    case OperatorKind::rms_norm:
      return (input_needs_gradient ? 9 : 3) * outputs;
    case OperatorKind::swiglu:
      return (activation_slope_flops(op.activation) + 1) * outputs;
    case OperatorKind::tanh:
      return 3 * outputs;
    case OperatorKind::attention:
      return 8 * attention_multiply_adds(op) + (op.drop_rate > 0 ? 6 : 5) * static_cast<Flops>(attention_scores(op));
    case OperatorKind::factorization:
      return 2 * static_cast<Flops>(graph.input_of(op).elements());
    case OperatorKind::route:
      return 5 * outputs;
    case OperatorKind::dispatch:
      return outputs;
    case OperatorKind::combine:
      return 3 * static_cast<Flops>(graph.input_of(op).elements());
    case OperatorKind::sum_rows:
      return op.parameters.empty() ? 0 : outputs;
    case OperatorKind::max_pool:
      return outputs;
    case OperatorKind::loss:
    case OperatorKind::binary_loss:
      return 2 * inputs_elements(graph, op);
    default:
      return forward_flops(graph, op);
  }
}

Flops step_flops(const Graph& graph) {
  const std::vector<bool> needed = graph.needs_gradient();
  Flops total = 0;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    if (op.inputs.empty()) continue;
    total += forward_flops(graph, op);
    if (needed[i] && !op.inputs.empty()) total += backward_flops(graph, op, needed[op.inputs.front().op]);
  }
  return total;
}

}  // namespace hcclsim::models
