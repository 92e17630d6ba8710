#include "models/onnx/emitter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "models/onnx/costs.hpp"
#include "models/onnx/layers.hpp"
#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {
namespace {

constexpr std::int64_t max_size = std::int64_t{1} << 31;

/// Written when somebody reads it.
bool is_written_late(const Network& network, const Node& node) {
  if (is_layout(node) || is_type(node, "Split") || is_type(node, "Slice")) return true;
  return is_type(node, "Gather") && network.is(node.inputs[0], Role::activation);
}

/// "/tmp/resnet50.onnx" is "resnet50.onnx".
std::string title_of(const std::string& file) { return file.substr(file.rfind('/') + 1); }

/// "layers.12" is "layers.".
std::string without_number(const std::string& layer) {
  return layer.substr(0, layer.find_last_not_of("0123456789") + 1);
}

/// Whether channels of the batch's images are behind their pixels, as TensorFlow has them, and a Transpose brings them
/// in front, of the images or of what element-wise operators make of them.
bool has_channels_last(const Network& network) {
  const std::string& input = network.batch_input();
  if (network.dims(input).size() != 4) return false;
  for (const std::size_t number : network.order()) {
    const Node& node = network.node(number);
    if (!is_type(node, "Transpose") ||
        integers(network, node, "perm", node.inputs.size()) != std::vector<std::int64_t>{0, 3, 1, 2}) {
      continue;
    }
    std::string name = node.inputs[0];
    while (name != input && network.tensor(name).producer != no_node) {
      const Node& maker = network.node(network.tensor(name).producer);
      const bool curve = is_cast(maker) || is_type(maker, "Add") || is_type(maker, "Sub") || is_type(maker, "Mul") ||
                         is_type(maker, "Div");
      const auto from = std::ranges::find_if(maker.inputs, [&](const std::string& one) {
        return network.is(one, Role::activation) && network.dims(one) == network.dims(input);
      });
      if (!curve || from == maker.inputs.end()) break;
      name = *from;
    }
    if (name == input) return true;
  }
  return false;
}

/// Names that exporters make up for weights that had none of their own, such as "onnx::MatMul_12" and "12".
bool is_made_up(const std::string& weight) {
  return weight.find("::") != std::string::npos || weight.find('.') == std::string::npos;
}

}  // namespace

Emitter::Emitter(const Network& network, const Patterns& patterns, const ImportOptions& options)
    : network_(network), patterns_(patterns), options_(options) {
  const std::string& input = network.batch_input();
  const TensorInfo& batch = network.tensor(input);
  std::vector<std::uint32_t> sizes = sizes_of(input);
  if (has_channels_last(network)) std::rotate(sizes.begin() + 1, sizes.begin() + 3, sizes.end());
  const bool tokens = kind_of(batch.type.element_type) == ElementKind::integer && sizes.size() <= 2 &&
                      std::ranges::any_of(network.order(), [&](std::size_t number) {
                        const Node& node = network.node(number);
                        return is_type(node, "Gather") && network.is(node.inputs[0], Role::weight) &&
                               Matching(network).same_numbers(node.inputs[1]) == input;
                      });
  const std::uint32_t samples = sizes.at(network.batch_axis());
  const std::int64_t features = elements_of(batch.type.dims) / samples;
  if (features > max_size) bad_input("onnx", "{}: input '{}' is too large", network.file(), input);
  const Shape rows{samples, static_cast<std::uint32_t>(features)};
  if (tokens) {
    builder_.emplace(GraphBuilder::of_tokens(title_of(network.file()), rows.batch(), rows.channels()));
  } else {
    builder_.emplace(title_of(network.file()), sizes.size() == 4 ? Shape(sizes) : rows);
  }
  values_.emplace(input, GraphBuilder::input());
  const auto count = [&](const std::string& name) {
    if (const std::string layer = layer_of(name); !layer.empty()) numbered_[without_number(layer)].insert(layer);
  };
  for (const auto& [name, constant] : network.model().initializers) {
    if (!is_made_up(name)) count(name);
  }
  for (const Node& node : network.model().nodes) {
    const auto reads = [&](const std::string& input) {
      return network.is(input, Role::weight) && is_made_up(network.tensor(input).weight);
    };
    if (std::ranges::any_of(node.inputs, reads)) count(node.name);
  }
}

Graph Emitter::run() && {
  const std::vector<std::string> outputs = logits();
  find_live(outputs);
  wanted_ = {outputs.begin(), outputs.end()};
  for (const std::size_t number : network_.order()) {
    const Node& node = network_.node(number);
    if (!live_.contains(number) || patterns_.absorbed.contains(number)) continue;
    const auto pattern = patterns_.by_last.find(number);
    if (pattern != patterns_.by_last.end()) {
      emit_pattern(number, pattern->second);
    } else if (!is_written_late(network_, node) && std::ranges::any_of(node.outputs, [&](const auto& name) {
                 return network_.is(name, Role::activation);
               })) {
      emit(number);
    }
  }
  return finish(outputs);
}

std::vector<std::string> Emitter::logits() const {
  std::vector<std::string> found;
  for (std::string name : network_.model().outputs) {
    if (!network_.is(name, Role::activation) || !network_.tensor(name).readers.empty()) continue;
    while (true) {
      const std::size_t producer = network_.tensor(name).producer;
      if (producer == no_node) break;
      const Node& node = network_.node(producer);
      const auto& dims = network_.dims(node.inputs.empty() ? name : node.inputs[0]);
      const bool softmax = (is_type(node, "Softmax") || is_type(node, "LogSoftmax")) &&
                           axis_of(integer(node, "axis", -1), dims.size()) + 1 == dims.size();
      const bool sigmoid = is_type(node, "Sigmoid") && !dims.empty() && dims.back() == 1;
      const bool loss = is_type(node, "SoftmaxCrossEntropyLoss") || is_type(node, "NegativeLogLikelihoodLoss");
      if (!softmax && !sigmoid && !loss && !is_cast(node)) break;
      name = node.inputs[0];
    }
    if (kind_of(network_.tensor(name).type.element_type) != ElementKind::floating) continue;
    if (std::ranges::find(found, name) == found.end()) found.push_back(name);
  }
  if (found.empty()) {
    bad_input("onnx", "{}: no output of floating point depends on input '{}', so that there is nothing to train",
              network_.file(), network_.batch_input());
  }
  return found;
}

void Emitter::find_live(const std::vector<std::string>& outputs) {
  std::vector<std::string> waiting = outputs;
  while (!waiting.empty()) {
    const std::string name = std::move(waiting.back());
    waiting.pop_back();
    if (name.empty() || network_.is_part_of_batch(name)) continue;
    const std::size_t producer = network_.tensor(name).producer;
    if (producer == no_node || !live_.insert(producer).second) continue;
    const auto pattern = patterns_.by_last.find(producer);
    const auto& inputs = pattern == patterns_.by_last.end() ? network_.node(producer).inputs : pattern->second.inputs;
    waiting.insert(waiting.end(), inputs.begin(), inputs.end());
  }
}

void Emitter::emit(std::size_t number) {
  emit_first(number);
  emit_copies(number);
}

void Emitter::emit_copies(std::size_t number) {
  const Node& node = network_.node(number);
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    const std::string& output = node.outputs[i];
    if (output.empty() || values_.contains(output) || !network_.is(output, Role::activation)) continue;
    if (network_.tensor(output).readers.empty() && !wanted_.contains(output)) continue;
    set(output, builder_->vector_work(name_for(number), varying(node), shape_of(output), {}));
  }
}

void Emitter::emit_first(std::size_t number) {
  const Node& node = network_.node(number);
  if (node.outputs[0].empty() && !is_recurrent(node)) network_.refuse(number, "its first result is left out");
  if (network_.is_known(number) && emit_known(number)) return;
  const VectorCost* const cost = network_.is_known(number) && node.domain.empty() ? vector_cost(node.type) : nullptr;
  if (cost != nullptr) {
    const std::int64_t elements = elements_of(network_.dims(cost->reduces ? node.inputs[0] : node.outputs[0]));
    emit_vector(number, {.forward = cost->forward * static_cast<std::uint64_t>(elements),
                         .backward = cost->backward * static_cast<std::uint64_t>(elements),
                         .keeps_inputs = cost->keeps_inputs,
                         .keeps_output = cost->keeps_output});
    return;
  }
  if (!options_.unsupported.has_value()) network_.refuse(number, "it cannot be imported");
  emit_vector(number, {.duration = options_.unsupported});
}

bool Emitter::emit_known(std::size_t number) {
  using Emit = bool (Emitter::*)(std::size_t);
  static const std::map<std::string_view, Emit> known{{"Conv", &Emitter::emit_convolution},
                                                      {"ConvTranspose", &Emitter::emit_convolution},
                                                      {"MaxPool", &Emitter::emit_pool},
                                                      {"AveragePool", &Emitter::emit_pool},
                                                      {"GlobalAveragePool", &Emitter::emit_pool},
                                                      {"GlobalMaxPool", &Emitter::emit_pool},
                                                      {"Gemm", &Emitter::emit_gemm},
                                                      {"MatMul", &Emitter::emit_matmul},
                                                      {"Einsum", &Emitter::emit_einsum},
                                                      {"Gelu", &Emitter::emit_activation},
                                                      {"Gather", &Emitter::emit_gather},
                                                      {"Add", &Emitter::emit_add},
                                                      {"BatchNormalization", &Emitter::emit_norm},
                                                      {"LayerNormalization", &Emitter::emit_norm},
                                                      {"Concat", &Emitter::emit_concat},
                                                      {"ReduceMean", &Emitter::emit_reduction},
                                                      {"Relu", &Emitter::emit_activation},
                                                      {"Clip", &Emitter::emit_activation},
                                                      {"Tanh", &Emitter::emit_activation},
                                                      {"Dropout", &Emitter::emit_dropout},
                                                      {"LSTM", &Emitter::emit_recurrent},
                                                      {"GRU", &Emitter::emit_recurrent},
                                                      {"RNN", &Emitter::emit_recurrent}};
  const Node& node = network_.node(number);
  if (!node.domain.empty()) return false;
  const auto emit = known.find(node.type);
  return emit != known.end() && (this->*emit->second)(number);
}

void Emitter::set(const std::string& name, Value value) {
  const auto elements = static_cast<std::int64_t>(builder_->shape(value).elements());
  if (elements != elements_of(network_.dims(name))) {
    bad_input("onnx", "{}: '{}' should have {} elements, its operator makes {}",
              network_.place(network_.tensor(name).producer), name, elements_of(network_.dims(name)), elements);
  }
  values_.insert_or_assign(name, value);
}

Value Emitter::value_of(const std::string& name) {
  if (const auto value = values_.find(name); value != values_.end()) return value->second;
  const TensorInfo& tensor = network_.tensor(name);
  if (network_.is_part_of_batch(name)) {
    const Shape shape = shape_of(name);
    const OperatorId id = builder_->vector_work(unique_name(name), {GraphBuilder::input()}, shape, {});
    return values_.emplace(name, shaped(name, id, shape, sequence_of(name))).first->second;
  }
  if (tensor.producer == no_node || tensor.role != Role::activation) {
    bad_input("onnx", "{}: '{}' is read as if it depended on the batch", network_.file(), name);
  }
  const Node& node = network_.node(tensor.producer);
  if (const auto rows = rows_to_add_.find(name); rows != rows_to_add_.end()) {
    // Nobody adds them to anything: they are all that there is at their positions.
    return values_.insert_or_assign(name, sum_of_rows(tensor.producer, rows->second)).first->second;
  }
  if (is_layout(node)) {
    emit_layout(tensor.producer);
  } else if (is_written_late(network_, node)) {
    emit_parts(tensor.producer);
    emit_copies(tensor.producer);
  } else {
    internal_error("{}: '{}' is read before it is written", network_.place(tensor.producer), name);
  }
  return values_.at(name);
}

std::vector<std::uint32_t> Emitter::sizes_of(const std::string& name) const {
  std::vector<std::uint32_t> sizes;
  for (const std::int64_t size : network_.dims(name)) {
    if (size < 1 || size > max_size) {
      bad_input("onnx", "{}: '{}' has a dimension of {}; accepted: 1 to {}", network_.file(), name, size, max_size);
    }
    sizes.push_back(static_cast<std::uint32_t>(size));
  }
  return sizes;
}

Shape Emitter::rows_shape(const std::string& name) const {
  const std::vector<std::uint32_t> sizes = sizes_of(name);
  const std::int64_t all = elements_of(network_.dims(name));
  const std::uint32_t features = sizes.size() < 2 ? 1 : sizes.back();
  if (all / features > max_size) bad_input("onnx", "{}: '{}' has more than {} rows", network_.file(), name, max_size);
  return {static_cast<std::uint32_t>(all / features), features};
}

Shape Emitter::shape_of(const std::string& name) const {
  return network_.dims(name).size() < 4 ? rows_shape(name) : Shape(sizes_of(name));
}

std::uint32_t Emitter::sequence_of(const std::string& name) const {
  const auto& dims = network_.dims(name);
  return dims.size() == 3 ? static_cast<std::uint32_t>(dims[1]) : 0;
}

Value Emitter::shaped(const std::string& name, Value value, const Shape& shape, std::uint32_t sequence) {
  const bool same_rows = sequence == 0 || builder_->rows_of_sequence(value) == sequence;
  if (builder_->shape(value) == shape && same_rows) return value;
  return builder_->reshape(name + ":reshape", value, shape, sequence);
}

Value Emitter::rows(const std::string& name) {
  return shaped(name, value_of(name), rows_shape(name), sequence_of(name));
}

Value Emitter::image(const std::string& name) { return shaped(name, value_of(name), Shape(sizes_of(name)), 0); }

std::string Emitter::name_for(std::size_t number, const std::string& weight) {
  const Node& node = network_.node(number);
  std::string name = node.name.empty() ? fmt::format("{}_{}", node.type, number) : node.name;
  if (!weight.empty() && !is_made_up(weight_name(weight)) && !knows(weight)) {
    const std::string whole = weight_name(weight);
    name = whole.substr(0, whole.rfind('.'));
  }
  return unique_name(name);
}

std::string Emitter::unique_name(const std::string& name) {
  std::string unique = name;
  for (int copy = 2; !taken_.insert(unique).second; ++copy) unique = fmt::format("{}_{}", name, copy);
  return unique;
}

std::string Emitter::layer_for(std::size_t number, const std::string& weight) const {
  const std::string name = weight_name(weight);
  // Exporters let operators whose weights have the same numbers share one, so that it says nothing of the second.
  const bool says_nothing = is_made_up(name) || knows(weight);
  const auto is_layered = [](const auto& numbered) { return numbered.second.size() > 1; };
  if (!says_nothing && std::ranges::none_of(numbered_, is_layered)) return operator_of(name);
  std::string layer = layer_of(says_nothing ? network_.node(number).name : name);
  // One alone is no layer of several.
  const auto found = numbered_.find(without_number(layer));
  return found == numbered_.end() || found->second.size() < 2 ? std::string() : layer;
}

void Emitter::begin(std::size_t number, const std::string& weight) {
  current_ = number;
  if (weight.empty()) return;
  const std::string name = weight_name(weight);
  const std::string layer = layer_for(number, weight);
  if (layer == layer_) return;
  // A name that says nothing leaves an operator where it is.
  if (layer.empty() && is_made_up(name) && network_.node(number).name.find_first_of("./") == std::string::npos) return;
  layer_ = layer;
  if (layer.empty()) {
    builder_->end_layers();
  } else {
    builder_->begin_layer();
  }
}

void Emitter::note(std::initializer_list<std::string> weights) {
  for (const std::string& weight : weights) {
    const std::uint64_t needed = builder_->graph().parameters.at(names_.size()).elements;
    const auto& dims = network_.dims(weight_name(weight));
    if (static_cast<std::uint64_t>(elements_of(dims)) != needed) {
      bad_input("onnx", "{}: its weight '{}' is {}, which are {} elements, but its inputs need {}",
                network_.place(current_), weight_name(weight), fmt::join(dims, "x"), elements_of(dims), needed);
    }
    parameters_.emplace(weight_name(weight), static_cast<std::uint32_t>(names_.size()));
    names_.push_back(weight_name(weight));
  }
}

std::vector<Value> Emitter::varying(const Node& node) {
  std::vector<Value> values;
  for (const std::string& input : node.inputs) {
    if (network_.is(input, Role::activation)) values.push_back(value_of(input));
  }
  return values;
}

Graph Emitter::finish(const std::vector<std::string>& outputs) {
  std::vector<Value> logits;
  logits.reserve(outputs.size());
  for (const std::string& output : outputs) logits.push_back(rows(output));
  if (names_.empty()) {
    bad_input("onnx",
              "{}: there is nothing to train: no operator reads an initializer or a constant of floating point as its "
              "weight, and inputs but '{}' are no weights",
              network_.file(), network_.batch_input());
  }
  const bool binary = logits.size() == 1 && builder_->shape(logits[0]).channels() == 1;
  Graph graph = binary ? std::move(*builder_).finish_binary(logits[0]) : std::move(*builder_).finish_sum(logits);
  if (names_.size() != graph.parameters.size()) internal_error("{}: parameters without a name", network_.file());
  for (std::size_t i = 0; i < names_.size(); ++i) graph.parameters[i].name = names_[i];
  return graph;
}

}  // namespace hcclsim::models::onnx
