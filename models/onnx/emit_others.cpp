#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/onnx/emitter.hpp"
#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {
namespace {

/// The only element of a constant.
std::optional<double> scalar(const Network& network, const Node& node, std::size_t input) {
  if (input >= node.inputs.size() || node.inputs[input].empty()) return std::nullopt;
  return Matching(network).scalar(node.inputs[input]);
}

bool contains(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

/// Whether the rows that a node looks up are those of positions; else of segments.
bool looks_up_positions(const Network& network, const Node& node) {
  const TensorInfo& indices = network.tensor(node.inputs[1]);
  if (indices.role == Role::constant && indices.constant.known) {
    const std::vector<double>& values = indices.constant.values;
    return values.size() < 2 || values[0] != values[1];
  }
  if (contains(node.inputs[1], {"type", "seg"}) || contains(node.inputs[0], {"type", "seg"})) return false;
  const auto& dims = indices.type.dims;
  return contains(node.inputs[1], {"pos"}) || dims.empty() || network.dims(node.inputs[0])[0] >= dims.back();
}

/// Whether a node looks up the rows of another sequence of tokens, such as that of a decoder, or of another category.
bool looks_up_tokens(const Network& network, const Node& node) {
  const std::string tokens = Matching(network).same_numbers(node.inputs[1]);
  const auto& inputs = network.model().inputs;
  const auto& dims = network.dims(node.inputs[1]);
  if (std::ranges::find(inputs, tokens) == inputs.end() || contains(tokens, {"type", "seg", "pos"})) return false;
  return dims.size() == 1 || (dims.size() == 2 && (dims.back() == 1 || network.dims(node.inputs[0])[0] > dims.back()));
}

/// Operators whose weights are trained.
bool trains(const Node& node) {
  static constexpr std::array<std::string_view, 8> types{
      "Add", "Sub", "Mul", "Div", "PRelu", "InstanceNormalization", "LayerNormalization", "BatchNormalization"};
  return node.domain.empty() && std::ranges::find(types, node.type) != types.end();
}

}  // namespace

bool Emitter::emit_gather(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& table = node.inputs[0];
  if (!network_.is(table, Role::weight) || network_.dims(table).size() != 2) return false;
  if (Matching(network_).same_numbers(node.inputs[1]) != network_.batch_input()) {
    if (knows(table) || looks_up_tokens(network_, node)) {
      look_up_rows(number);
      return true;
    }
    rows_to_add_[node.outputs[0]] = {node.outputs[0]};
    return true;
  }
  // The same rows again, if somebody has looked them up before.
  if (const auto same = tables_.find(weight_name(table)); same != tables_.end()) {
    set(node.outputs[0], same->second);
    return true;
  }
  const std::vector<std::uint32_t> sizes = sizes_of(table);
  begin(number, table);
  const std::string name = name_for(number, table);
  const OperatorId id = builder_->token_embedding(name, GraphBuilder::input(), sizes[0], sizes[1]);
  tables_.emplace(weight_name(table), id);
  note({table});
  set(node.outputs[0], id);
  return true;
}

void Emitter::look_up_rows(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& table = node.inputs[0];
  const Shape rows = shape_of(node.outputs[0]);
  begin(number, table);
  const OperatorId id = builder_->vector_work(name_for(number, table), {GraphBuilder::input()}, rows, {});
  use_weight(id, table);
  values_.insert_or_assign(node.outputs[0], shaped(node.outputs[0], id, rows, sequence_of(node.outputs[0])));
}

const std::vector<std::string>* Emitter::waiting_rows(std::string name) const {
  while (true) {
    if (const auto waiting = rows_to_add_.find(name); waiting != rows_to_add_.end()) return &waiting->second;
    const std::size_t producer = network_.tensor(name).producer;
    if (producer == no_node) return nullptr;
    const Node& node = network_.node(producer);
    if (!is_layout(node) || is_type(node, "Transpose") || node.inputs.empty()) return nullptr;
    // Positions for each sequence of a batch are those of one.
    if (network_.dims(name).empty() || network_.dims(node.inputs[0]).empty() ||
        network_.dims(name).back() != network_.dims(node.inputs[0]).back()) {
      return nullptr;
    }
    name = node.inputs[0];
  }
}

Value Emitter::with_rows(std::size_t number, Value x, const std::vector<std::string>& looked_up) {
  for (const std::string& found : looked_up) {
    const std::size_t gather = network_.tensor(found).producer;
    const std::string& table = network_.node(gather).inputs[0];
    const std::uint32_t positions = sizes_of(table)[0];
    if (knows(table)) {
      look_up_rows(gather);
      x = builder_->add(name_for(number), x, rows(found));
      continue;
    }
    begin(gather, table);
    const std::string name = name_for(gather, table);
    x = looks_up_positions(network_, network_.node(gather)) ? builder_->position_embedding(name, x, positions)
                                                            : builder_->segment_embedding(name, x, positions);
    note({table});
  }
  return x;
}

Value Emitter::sum_of_rows(std::size_t number, const std::vector<std::string>& looked_up) {
  const std::string& first = looked_up.front();
  const std::size_t gather = network_.tensor(first).producer;
  const std::string& table = network_.node(gather).inputs[0];
  Value x = GraphBuilder::input();
  const std::vector<std::uint32_t> sizes = sizes_of(table);
  const std::uint64_t of_batch =
      std::uint64_t{builder_->shape(x).batch()} * builder_->rows_of_sequence(x) * sizes.at(1);
  // Rows for other places than those of the batch, such as relative positions, are looked up as they are.
  if (knows(table) || static_cast<std::uint64_t>(elements_of(network_.dims(first))) != of_batch) {
    look_up_rows(gather);
    x = values_.at(first);
  } else {
    begin(gather, table);
    x = builder_->position_rows(name_for(gather, table), sizes[0], sizes[1]);
    note({table});
  }
  return with_rows(number, x, {looked_up.begin() + 1, looked_up.end()});
}

bool Emitter::emit_add(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& a = node.inputs[0];
  const std::string& b = node.inputs[1];
  const std::string& sum = node.outputs[0];
  const std::vector<std::string>* const waiting_a = waiting_rows(a);
  const std::vector<std::string>* const waiting_b = waiting_rows(b);
  if (waiting_a != nullptr && waiting_b != nullptr) {
    std::vector<std::string> both = *waiting_a;
    both.insert(both.end(), waiting_b->begin(), waiting_b->end());
    rows_to_add_[sum] = std::move(both);
    return true;
  }
  if (waiting_a != nullptr || waiting_b != nullptr) {
    const std::string& other = waiting_a != nullptr ? b : a;
    if (network_.is(other, Role::activation) && network_.dims(other).size() == 3) {
      set(sum, with_rows(number, rows(other), waiting_a != nullptr ? *waiting_a : *waiting_b));
      return true;
    }
  }
  if (network_.is(a, Role::activation) && network_.is(b, Role::activation)) {
    if (network_.dims(a) != network_.dims(b)) return false;
    const bool flat = network_.dims(a).size() < 4;
    const Value left = flat ? rows(a) : image(a);
    const Value right = flat ? rows(b) : image(b);
    set(sum, builder_->add(name_for(number), left, right));
    return true;
  }
  // A table of all positions as one tensor.
  const std::string& weight = network_.is(a, Role::weight) ? a : b;
  const std::string& x = network_.is(a, Role::weight) ? b : a;
  const auto& dims = network_.dims(x);
  const auto& table = network_.dims(weight);
  if (!network_.is(weight, Role::weight) || dims.size() != 3 || table.size() < 2 || knows(weight) ||
      elements_of(table) != dims[1] * dims[2] || table.back() != dims[2]) {
    return false;
  }
  const auto& whole = network_.dims(weight_name(weight));
  begin(number, weight);
  const Value x_rows = rows(x);
  const auto positions = static_cast<std::uint32_t>(elements_of(whole) / dims[2]);
  set(sum, builder_->position_embedding(name_for(number, weight), x_rows, positions));
  note({weight});
  return true;
}

bool Emitter::emit_norm(std::size_t number) {
  const Node& node = network_.node(number);
  const auto is_weight = [&](std::size_t input) {
    return input < node.inputs.size() && network_.is(node.inputs[input], Role::weight);
  };
  if (!is_weight(1) || !is_weight(2)) return false;
  const std::string& x = node.inputs[0];
  const bool batch = node.type == "BatchNormalization";
  const auto& dims = network_.dims(x);
  if (!batch && axis_of(integer(node, "axis", -1), dims.size()) + 1 != dims.size()) return false;
  if (batch && dims.size() < 2) return false;
  begin(number, node.inputs[1]);
  const std::string name = name_for(number, node.inputs[1]);
  if (batch && dims.size() != 2 && dims.size() != 4) {
    // Lines and volumes of pixels are images of as many.
    const std::vector<std::uint32_t> sizes = sizes_of(x);
    const auto pixels = static_cast<std::uint32_t>(elements_of(dims) / dims[0] / dims[1]);
    const Value picture = shaped(x, value_of(x), Shape{sizes[0], sizes[1], pixels, 1}, 0);
    const OperatorId id = builder_->batch_norm(name, picture);
    set(node.outputs[0], shaped(node.outputs[0], id, shape_of(node.outputs[0]), sequence_of(node.outputs[0])));
  } else {
    set(node.outputs[0], batch ? builder_->batch_norm(name, image(x)) : builder_->layer_norm(name, rows(x)));
  }
  note({node.inputs[1], node.inputs[2]});
  return true;
}

bool Emitter::emit_concat(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& out = node.outputs[0];
  const std::size_t rank = network_.dims(out).size();
  const std::size_t axis = axis_of(integer(node, "axis", 0), rank);
  if (rank == 3 && axis == 1 && node.inputs.size() == 2 && network_.is(node.inputs[0], Role::weight) &&
      network_.is(node.inputs[1], Role::activation) && network_.dims(node.inputs[0])[1] == 1 &&
      !knows(node.inputs[0])) {
    begin(number, node.inputs[0]);
    const Value x = rows(node.inputs[1]);
    set(out, builder_->class_token(name_for(number, node.inputs[0]), x));
    note({node.inputs[0]});
    return true;
  }
  const bool all_vary =
      std::ranges::all_of(node.inputs, [&](const auto& name) { return network_.is(name, Role::activation); });
  const bool last = axis + 1 == rank;
  if (!all_vary || (rank == 3 && !last) || rank < 2) return false;
  std::vector<Value> parts;
  for (const std::string& input : node.inputs) parts.push_back(rank < 4 ? rows(input) : image(input));
  set(out, builder_->concat(name_for(number), parts, static_cast<std::uint32_t>(rank == 3 ? 1 : axis)));
  return true;
}

bool Emitter::emit_reduction(std::size_t number) {
  const Node& node = network_.node(number);
  const std::vector<std::int64_t> axes = integers(network_, node, "axes", 1);
  const auto& dims = network_.dims(node.inputs[0]);
  if (dims.size() != 4 || axes.size() != 2) return false;
  const std::size_t first = std::min(axis_of(axes[0], 4), axis_of(axes[1], 4));
  const std::size_t second = std::max(axis_of(axes[0], 4), axis_of(axes[1], 4));
  if (first != 2 || second != 3) return false;
  const OperatorId id = builder_->average_pool(name_for(number), image(node.inputs[0]), 1);
  set(node.outputs[0], shaped(node.outputs[0], id, shape_of(node.outputs[0]), 0));
  return true;
}

bool Emitter::emit_activation(std::size_t number) {
  const Node& node = network_.node(number);
  if (node.type == "Clip") {
    const double lowest = scalar(network_, node, 1).value_or(real(node, "min", -1));
    const double highest = scalar(network_, node, 2).value_or(real(node, "max", -1));
    if (lowest != 0 || highest != 6) return false;
  }
  const Value x = value_of(node.inputs[0]);
  const std::string name = name_for(number);
  set(node.outputs[0], node.type == "Clip"   ? builder_->relu6(name, x)
                       : node.type == "Tanh" ? builder_->tanh(name, x)
                       : node.type == "Gelu" ? builder_->gelu(name, x)
                                             : builder_->relu(name, x));
  return true;
}

bool Emitter::emit_dropout(std::size_t number) {
  const Node& node = network_.node(number);
  const double rate = scalar(network_, node, 1).value_or(real(node, "ratio", 0.5));
  const Value x = value_of(node.inputs[0]);
  set(node.outputs[0], rate == 0 ? x : builder_->dropout(name_for(number), x, static_cast<float>(rate)));
  return true;
}

void Emitter::emit_vector(std::size_t number, const VectorWork& work) {
  const Node& node = network_.node(number);
  std::vector<std::string> weights;
  for (const std::string& input : node.inputs) {
    if (trains(node) && network_.is(input, Role::weight)) weights.push_back(input);
  }
  begin(number, weights.empty() ? "" : weights.front());
  std::vector<Value> inputs = varying(node);
  const std::string name = name_for(number, weights.empty() ? "" : weights.front());
  const OperatorId id = builder_->vector_work(name, inputs, shape_of(node.outputs[0]), work);
  for (const std::string& weight : weights) use_weight(id, weight);
  set(node.outputs[0], id);
}

void Emitter::emit_layout(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& from = node.inputs[0];
  const std::string& to = node.outputs[0];
  const auto& dims = network_.dims(from);
  if (network_.dims(to) == dims && node.type != "Transpose") {
    values_.insert_or_assign(to, value_of(from));
    return;
  }
  if (node.type == "Expand" || node.type == "Tile") {
    emit_vector(number, {});
    return;
  }
  if (node.type == "Transpose") {
    // The images of the batch have their channels in front whatever the file says.
    const Shape& images = builder_->shape(GraphBuilder::input());
    if (dims == network_.dims(network_.batch_input()) && dims.size() == 4 && images.rank() == 4 &&
        images != Shape(sizes_of(from)) && images == Shape(sizes_of(to))) {
      set(to, shaped(to, value_of(from), images, 0));
      return;
    }
    // An image whose pixels are rows.
    const std::size_t before = network_.tensor(from).producer;
    const std::vector<std::int64_t> order = integers(network_, node, "perm", node.inputs.size());
    const bool swaps = order == std::vector<std::int64_t>{0, 2, 1};
    if (swaps && before != no_node && is_layout(network_.node(before)) && !network_.node(before).inputs.empty()) {
      const std::string& picture = network_.node(before).inputs[0];
      const auto& sizes = network_.dims(picture);
      if (sizes.size() == 4 && dims[1] == sizes[1] && network_.is(picture, Role::activation)) {
        set(to, builder_->patches(name_for(number), image(picture)));
        return;
      }
    }
    emit_vector(number, {});
    return;
  }
  const Value value = value_of(from);
  if (dims.size() == 4 && network_.dims(to).size() == 2 && network_.dims(to)[0] == dims[0]) {
    set(to, builder_->flatten(name_for(number), image(from)));
    return;
  }
  set(to, shaped(to, value, shape_of(to), sequence_of(to)));
}

void Emitter::emit_parts(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& from = node.inputs[0];
  const auto& dims = network_.dims(from);
  const auto& out = network_.dims(node.outputs[0]);
  if (node.type == "Split") {
    const std::size_t axis = axis_of(integer(node, "axis", 0), dims.size());
    const bool even =
        std::ranges::all_of(node.outputs, [&](const std::string& name) { return network_.dims(name) == out; });
    if (even && dims.size() >= 2 && (dims.size() != 3 || axis == 2)) {
      const Value whole = dims.size() < 4 ? rows(from) : image(from);
      const auto parts = static_cast<std::uint32_t>(node.outputs.size());
      const OperatorId id =
          builder_->split(name_for(number), whole, static_cast<std::uint32_t>(dims.size() == 3 ? 1 : axis), parts);
      for (std::uint32_t part = 0; part < parts; ++part) set(node.outputs[part], Value(id, part));
      return;
    }
    emit_vector(number, {});
    return;
  }
  // The first rows of every sequence, or one of them.
  const bool slices = node.type == "Slice";
  const std::vector<std::int64_t> axes =
      slices ? integers(network_, node, "axes", 3) : std::vector{integer(node, "axis", 0)};
  const std::vector<std::int64_t> starts =
      slices ? integers(network_, node, "starts", 1) : std::vector<std::int64_t>{0};
  const bool along_rows = dims.size() == 3 && axes.size() == 1 && axis_of(axes[0], 3) == 1 && starts.size() == 1;
  const bool one_row = !slices && scalar(network_, node, 1).has_value();
  if (along_rows && ((slices && starts[0] == 0) || one_row)) {
    const Value all = rows(from);
    const auto count = static_cast<std::uint32_t>(elements_of(out) / (dims[0] * dims[2]));
    if (builder_->rows_of_sequence(all) == dims[1] && count >= 1) {
      set(node.outputs[0], builder_->select_rows(name_for(number), all, count));
      return;
    }
  }
  emit_vector(number, {});
}

}  // namespace hcclsim::models::onnx
