#include "models/onnx/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "models/onnx/einsum.hpp"
#include "models/onnx/folding/folding.hpp"
#include "models/onnx/matching.hpp"
#include "models/onnx/samples.hpp"

namespace hcclsim::models::onnx {
namespace {

bool any_of_types(const Node& node, std::initializer_list<std::string_view> types) {
  return node.domain.empty() && std::ranges::find(types, node.type) != types.end();
}

}  // namespace

std::int64_t whole(double value) {
  if (value >= 0x1p63) return INT64_MAX;
  if (value <= -0x1p63) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

std::int64_t integer(const Node& node, const std::string& attribute, std::int64_t otherwise) {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() || found->second.ints.empty() ? otherwise : found->second.ints.front();
}

double real(const Node& node, const std::string& attribute, double otherwise) {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() || found->second.floats.empty() ? otherwise : found->second.floats.front();
}

std::string text(const Node& node, const std::string& attribute) {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() || found->second.texts.empty() ? std::string() : found->second.texts.front();
}

std::vector<std::int64_t> integers(const Network& network, const Node& node, std::string_view attribute,
                                   std::size_t input) {
  const auto found = node.attributes.find(std::string(attribute));
  if (found != node.attributes.end()) return found->second.ints;
  std::vector<std::int64_t> values;
  if (input >= node.inputs.size() || node.inputs[input].empty()) return values;
  const TensorInfo& tensor = network.tensor(node.inputs[input]);
  if (tensor.role != Role::constant || !tensor.constant.known) return values;
  for (const double value : tensor.constant.values) values.push_back(whole(value));
  return values;
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const std::int64_t from_front = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  return from_front < 0 ? 0 : static_cast<std::size_t>(from_front);
}

std::int64_t elements_of(const std::vector<std::int64_t>& dims) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) {
    if (__builtin_mul_overflow(elements, size, &elements)) return most;
  }
  return elements;
}

Network::Network(const std::string& file, const ImportOptions& options) : file_(file), open_(onnx_module().open(file)) {
  while (!evaluate_all(options)) {
  }
  for (const std::string& output : model().outputs) {
    if (!tensors_.contains(output)) bad_input("onnx", "{}: output '{}' is made by no node", file_, output);
  }
  if (samples_of_file_ > 0) change_samples(options.batch);
}

bool Network::evaluate_all(const ImportOptions& options) {
  tensors_.clear();
  producers_.clear();
  order_.clear();
  unknown_.clear();
  parts_of_batch_.clear();
  batch_axis_ = 0;
  weights_.emplace(model());
  for (const auto& [name, constant] : model().initializers) {
    const bool trained = weights_->may_be_trained(name, constant);
    TensorInfo& tensor = tensors_[name];
    tensor.type = {.element_type = constant.element_type, .has_shape = true, .dims = constant.dims};
    tensor.role = trained ? Role::weight : Role::constant;
    tensor.constant = constant;
    if (trained) tensor.weight = name;
  }
  choose_batch_input();
  choose_batch_axis();
  add_inputs(options);
  sort_nodes();
  for (const std::size_t number : order_) {
    if (take_branch(number)) return false;
    evaluate(number, options);
  }
  return true;
}

bool Network::take_branch(std::size_t number) {
  const Node& of = node(number);
  if (!any_of_types(of, {"If"}) || of.inputs.empty() || of.inputs[0].empty()) return false;
  const TensorInfo& condition = tensors_.at(of.inputs[0]);
  if (condition.role != Role::constant || !condition.constant.known || condition.constant.values.size() != 1)
    return false;
  return open_->take_branch(number, condition.constant.values.front() != 0);
}

void Network::change_samples(std::int64_t samples) {
  for (const auto& [name, axis] : sample_axes(*this)) {
    std::int64_t& size = tensors_.at(name).type.dims[axis];
    if (size % samples_of_file_ != 0) {
      bad_input(
          "onnx",
          "{}: input '{}' has the fixed batch of {}, and '{}' does not have a part for each sample; give --batch {}",
          file_, batch_input_, samples_of_file_, name, samples_of_file_);
    }
    size = size / samples_of_file_ * samples;
  }
}

std::string Network::place(std::size_t number) const {
  const Node& of = node(number);
  if (of.name.empty()) return fmt::format("{}: node {} ({})", file_, number, of.type);
  return fmt::format("{}: node '{}' ({})", file_, of.name, of.type);
}

void Network::refuse(std::size_t number, std::string_view why) const {
  const Node& of = node(number);
  const auto set = model().operator_sets.find(of.domain);
  const std::string version = set == model().operator_sets.end() ? "none" : std::to_string(set->second);
  bad_input("onnx",
            "{}: operator {} of domain {}, set {}: {}; --unsupported time=10us goes on and lets it take that long",
            place(number), of.type, of.domain.empty() ? "ai.onnx" : of.domain, version, why);
}

void Network::choose_batch_input() {
  if (model().inputs.empty()) bad_input("onnx", "{}: the graph has no input", file_);
  batch_input_ = model().inputs.front();
  std::int64_t most = 0;
  std::map<std::string, std::string> views;  // what other axes or another type are of
  for (const Node& node : model().nodes) {
    if (keeps_numbers(node) && !node.inputs.empty() && node.outputs.size() == 1)
      views.emplace(node.outputs[0], node.inputs[0]);
  }
  const auto source = [&](std::string name) {
    for (std::size_t steps = 0; steps < views.size() && views.contains(name); ++steps) name = views.at(name);
    return name;
  };
  for (const Node& node : model().nodes) {
    if (!any_of_types(node, {"Gather"}) || node.inputs.size() != 2) continue;
    const Constant* const table = weights_->stored(node.inputs[0]);
    if (table == nullptr || table->dims.size() != 2 || table->dims[0] <= most) continue;
    const std::string tokens = source(node.inputs[1]);
    if (std::ranges::find(model().inputs, tokens) == model().inputs.end()) continue;
    most = table->dims[0];
    batch_input_ = tokens;
  }
}

void Network::choose_batch_axis() {
  std::map<std::string, const Node*> makers;
  for (const Node& node : model().nodes) {
    for (const std::string& output : node.outputs) makers.emplace(output, &node);
  }
  for (const Node& node : model().nodes) {
    if (!is_recurrent(node) || node.inputs.empty()) continue;
    // From its rows back to the batch: are the first two axes another way round there?
    bool steps_first = integer(node, "layout", 0) == 0;
    std::string name = node.inputs[0];
    for (std::size_t seen = 0; seen < makers.size() && makers.contains(name); ++seen) {
      const Node& maker = *makers.at(name);
      if (any_of_types(maker, {"Conv"})) break;  // which has samples in front
      const auto order = maker.attributes.find("perm");
      if (any_of_types(maker, {"Transpose"}) && order != maker.attributes.end() && order->second.ints.size() > 1 &&
          order->second.ints[0] == 1 && order->second.ints[1] == 0) {
        steps_first = !steps_first;
      }
      const std::size_t from = any_of_types(maker, {"Gather"}) ? 1 : 0;
      if (maker.inputs.size() <= from) break;
      name = maker.inputs[from];
    }
    if (name != batch_input_) continue;
    const TensorType& batch = model().types.at(batch_input_);
    batch_axis_ = steps_first && batch.has_shape && batch.dims.size() > 1 ? 1 : 0;
    return;
  }
}

void Network::add_inputs(const ImportOptions& options) {
  std::map<std::string, std::uint32_t> sizes = options.dims;
  std::set<std::string> used;
  const TensorType& batch = model().types.at(batch_input_);
  if (!batch.has_shape || batch.dims.empty()) {
    bad_input("onnx", "{}: input '{}' has no shape; export with one", file_, batch_input_);
  }
  const std::int64_t fixed = batch.dims[batch_axis_];
  const std::string& samples = batch.symbols[batch_axis_];
  samples_of_file_ = fixed > 0 && fixed != options.batch ? fixed : 0;
  // Shapes are those of the file until all are known; there are no samples without a name then.
  const std::int64_t batch_size = samples_of_file_ > 0 ? samples_of_file_ : options.batch;
  if (!samples.empty()) {
    if (sizes.contains(samples)) {
      bad_input("onnx", "{}: --onnx-dim {}: that is the batch; give --batch", file_, samples);
    }
    sizes[samples] = options.batch;
    used.insert(samples);
  }
  std::vector<std::string> missing;
  for (const std::string& name : model().inputs) {
    TensorType type = model().types.at(name);
    if (!type.has_shape) bad_input("onnx", "{}: input '{}' has no shape; export with one", file_, name);
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      if (type.dims[i] >= 0) continue;
      const std::string symbol = type.symbols[i].empty() ? fmt::format("{}.{}", name, i) : type.symbols[i];
      used.insert(symbol);
      const auto size = sizes.find(symbol);
      if (size != sizes.end()) {
        type.dims[i] = size->second;
      } else if (i == (name == batch_input_ ? batch_axis_ : 0)) {
        type.dims[i] = batch_size;
      } else if (std::ranges::find(missing, symbol) == missing.end()) {
        missing.push_back(symbol);
      }
    }
    TensorInfo& tensor = tensors_[name];
    tensor.type = std::move(type);
    tensor.role = name == batch_input_ ? Role::activation : Role::side;
  }
  for (const auto& [symbol, size] : options.dims) {
    if (used.contains(symbol)) continue;
    bad_input("onnx", "{}: --onnx-dim {}={}: no input has such a dimension; there are: {}", file_, symbol, size,
              used.empty() ? "none" : fmt::format("{}", fmt::join(used, ", ")));
  }
  if (!missing.empty()) {
    bad_input("onnx", "{}: the file does not say how large {} {}; give --onnx-dim {}=128, with the right sizes", file_,
              fmt::join(missing, ", "), missing.size() > 1 ? "are" : "is", fmt::join(missing, "=128,"));
  }
}

void Network::sort_nodes() {
  const std::vector<Node>& nodes = model().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].outputs.empty()) bad_input("onnx", "{}: makes nothing", place(i));
    if (const std::string trouble = open_->trouble(i); !trouble.empty()) bad_input("onnx", "{}: {}", place(i), trouble);
    for (const std::string& output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (tensors_.contains(output) || !producers_.emplace(output, i).second) {
        bad_input("onnx", "{}: makes '{}', which is there already", place(i), output);
      }
    }
  }
  // Nodes that wait for others come behind them; else their order is that of the file.
  enum class State : std::uint8_t { waits, open, done };
  std::vector<State> states(nodes.size(), State::waits);
  std::vector<std::size_t> path;
  for (std::size_t first = 0; first < nodes.size(); ++first) {
    path.push_back(first);
    while (!path.empty()) {
      const std::size_t number = path.back();
      if (states[number] == State::done) {
        path.pop_back();
        continue;
      }
      states[number] = State::open;
      std::size_t waits_for = no_node;
      for (const std::string& input : nodes[number].inputs) {
        if (input.empty() || tensors_.contains(input)) continue;
        const auto producer = producers_.find(input);
        if (producer == producers_.end()) {
          bad_input("onnx", "{}: reads '{}', which is neither an input nor an initializer, and no node makes it",
                    place(number), input);
        }
        if (states[producer->second] == State::open) {
          bad_input("onnx", "{}: is part of a cycle: it reads '{}', which depends on it", place(number), input);
        }
        if (states[producer->second] == State::waits && waits_for == no_node) waits_for = producer->second;
      }
      if (waits_for != no_node) {
        path.push_back(waits_for);
        continue;
      }
      states[number] = State::done;
      order_.push_back(number);
      path.pop_back();
    }
  }
}

bool Network::is_view_of_weight(const Node& node) const {
  return !node.inputs.empty() && is(node.inputs[0], Role::weight) &&
         any_of_types(node, {"Transpose", "Identity", "Cast", "CastLike", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
                             "Slice", "Split", "Expand"});
}

std::vector<std::vector<std::int64_t>> Network::dims_of_inputs(const Node& node) const {
  std::vector<std::vector<std::int64_t>> all;
  for (const std::string& input : node.inputs) {
    if (!input.empty()) all.push_back(dims(input));
  }
  return all;
}

Role Network::role_of(const Node& node) const {
  bool varies = false;
  for (const std::string& input : node.inputs) {
    if (input.empty()) continue;
    if (is(input, Role::activation) && !any_of_types(node, {"Shape", "Size"})) return Role::activation;
    varies = varies || !is(input, Role::constant);
  }
  if (is_view_of_weight(node)) return Role::weight;
  // Rows of a table for every position or segment are added to what there is, and trained.
  if (any_of_types(node, {"Gather"}) && is(node.inputs[0], Role::weight) && dims(node.inputs[0]).size() == 2 &&
      integer(node, "axis", 0) == 0) {
    return Role::activation;
  }
  return varies && !any_of_types(node, {"Shape", "Size"}) ? Role::side : Role::constant;
}

std::vector<TensorType> Network::types_of(std::size_t number, const ImportOptions& options) {
  const Node& of = node(number);
  std::vector<KnownInput> inputs;
  for (const std::string& name : of.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    const TensorInfo& tensor = tensors_.at(name);
    inputs.push_back({.type = &tensor.type, .constant = tensor.constant.known ? &tensor.constant : nullptr});
  }
  Inference inference = open_->infer(number, inputs);
  if (!inference.trouble.empty()) bad_input("onnx", "{}: {}", place(number), inference.trouble);
  if (!inference.known) {
    unknown_.insert(number);
    if (!options.unsupported.has_value()) {
      refuse(number, any_of_types(of, {"If"})
                         ? "its condition is not known before it runs, so that neither branch is taken"
                     : of.holds_graph ? "graphs inside a graph are not read"
                                      : "it is not known");
    }
  }
  inference.outputs.resize(of.outputs.size());
  for (std::size_t i = 0; i < of.outputs.size(); ++i) {
    TensorType& type = inference.outputs[i];
    const bool complete = type.has_shape && std::ranges::all_of(type.dims, [](std::int64_t size) { return size >= 0; });
    if (complete || of.outputs[i].empty()) continue;
    if (any_of_types(of, {"Einsum"}) && inference.known) {
      if (const auto einsum = Einsum::read(text(of, "equation"), dims_of_inputs(of)); einsum.has_value()) {
        type.has_shape = true;
        type.dims = einsum->dims();
        continue;
      }
    }
    if (any_of_types(of, {"OneHot"}) && inference.known && set_one_hot(of, type)) continue;
    const auto stated = model().types.find(of.outputs[i]);
    if (stated != model().types.end() && stated->second.has_shape &&
        std::ranges::all_of(stated->second.dims, [](std::int64_t size) { return size >= 0; })) {
      type = stated->second;
    } else if (unknown_.contains(number) && !of.holds_graph && !of.inputs.empty() && !of.inputs[0].empty()) {
      type = tensors_.at(of.inputs[0]).type;
    } else if (of.holds_graph) {
      bad_input("onnx", "{}: neither the file nor its branches say the shape of '{}' in numbers", place(number),
                of.outputs[i]);
    } else if (i == 0) {
      bad_input("onnx", "{}: the shape of '{}' depends on values that are not known before it runs", place(number),
                of.outputs[i]);
    }
  }
  return std::move(inference.outputs);
}

bool Network::set_one_hot(const Node& node, TensorType& type) const {
  const Constant& depth = tensors_.at(node.inputs[1]).constant;
  if (!depth.known || depth.values.size() != 1) return false;
  type.has_shape = true;
  type.dims = dims(node.inputs[0]);
  const std::size_t axis = axis_of(integer(node, "axis", -1), type.dims.size() + 1);
  if (axis > type.dims.size()) return false;
  type.dims.insert(type.dims.begin() + static_cast<std::ptrdiff_t>(axis), whole(depth.values.front()));
  return true;
}

void Network::join_batch(const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[0].empty() || !is(node.inputs[1], Role::weight)) return;
  const bool product = any_of_types(node, {"MatMul", "Gemm"});
  // What weights are multiplied with may be numbers of the file too, such as coordinates of relative positions.
  const auto only_multiplied = [&](const Node& reader) {
    return std::ranges::count(reader.inputs, node.inputs[0]) == 0 ||
           (any_of_types(reader, {"MatMul", "Gemm"}) && reader.inputs[0] == node.inputs[0]);
  };
  const bool numbers = product && (is(node.inputs[0], Role::weight) || is(node.inputs[0], Role::constant)) &&
                       dims(node.inputs[0]).size() > 1 && elements_of(dims(node.inputs[0])) > 1 &&
                       std::ranges::all_of(model().nodes, only_multiplied);
  if (!numbers && !is(node.inputs[0], Role::side)) return;
  // Rotary positions are products of positions and a row of frequencies.
  const auto& weight = dims(node.inputs[1]);
  const bool matrix = weight.size() == 2 && weight[0] > 1 && weight[1] > 1;
  if (product ? !matrix
              : !any_of_types(node, {"Conv", "ConvTranspose", "BatchNormalization", "LayerNormalization",
                                     "InstanceNormalization"})) {
    return;
  }
  tensors_.at(node.inputs[0]).role = Role::activation;
  parts_of_batch_.insert(node.inputs[0]);
}

void Network::evaluate(std::size_t number, const ImportOptions& options) {
  const Node& of = node(number);
  join_batch(of);
  std::set<std::string> read;
  for (const std::string& input : of.inputs) {
    if (any_of_types(of, {"Shape", "Size"})) break;  // they read no numbers
    if (!input.empty() && read.insert(input).second) tensors_.at(input).readers.push_back(number);
  }
  const bool filled = weights_->is_filled(of.outputs[0]);
  const Role role = filled ? Role::weight : role_of(of);
  if ((role == Role::constant || role == Role::side) && of.outputs.size() == 1) {
    if (std::optional<Constant> folded = fold(*this, of); folded.has_value()) {
      TensorInfo& tensor = tensors_[of.outputs[0]];
      tensor.type = {.element_type = folded->element_type, .has_shape = true, .dims = folded->dims};
      const bool trained = of.type == "Constant" && weights_->may_be_trained(of.outputs[0], *folded);
      tensor.role = trained ? Role::weight : role;
      if (trained) tensor.weight = of.outputs[0];
      tensor.constant = *std::move(folded);
      tensor.producer = number;
      return;
    }
  }
  std::vector<TensorType> types = types_of(number, options);
  for (std::size_t i = 0; i < of.outputs.size(); ++i) {
    if (of.outputs[i].empty()) continue;
    TensorInfo& tensor = tensors_[of.outputs[i]];
    tensor.type = std::move(types[i]);
    // What else a batch norm makes are means over time of its own.
    tensor.role = role == Role::activation && i > 0 && any_of_types(of, {"BatchNormalization"}) ? Role::side : role;
    tensor.producer = number;
    if (role == Role::constant) {
      tensor.constant.element_type = tensor.type.element_type;
      tensor.constant.dims = tensor.type.dims;
    }
    if (role != Role::weight) continue;
    if (filled) {
      tensor.weight = of.outputs[i];
      continue;
    }
    const TensorInfo& from = tensors_.at(of.inputs[0]);
    tensor.weight = from.weight;
    tensor.transposed = from.transposed != (of.type == "Transpose");
  }
}

}  // namespace hcclsim::models::onnx
