#include "models/graph_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::models {
namespace {

constexpr std::uint32_t max_batch = 65536;
constexpr std::uint32_t max_image = 8192;        // pixels per side
constexpr std::uint32_t max_channels = 1 << 24;  // features, classes
constexpr std::uint64_t max_rows = 1 << 24;      // sequences × length
constexpr std::uint64_t max_parameters = std::uint64_t{1} << 43;

}  // namespace

GraphBuilder::GraphBuilder(std::string title, const Shape& input) {
  graph_.title = std::move(title);
  if (input.batch() == 0 || input.batch() > max_batch) {
    bad_input("model", "batch must be 1 to {}, got {}", max_batch, input.batch());
  }
  if (input.height() == 0 || input.width() == 0 || input.height() > max_image || input.width() > max_image) {
    bad_input("model", "input images must have 1 to {} pixels per side, got {}x{}", max_image, input.height(),
              input.width());
  }
  graph_.input_kind = input.image() == 1 ? InputKind::features : InputKind::images;
  append("input", OperatorKind::input, {}, input);
}

GraphBuilder GraphBuilder::of_tokens(std::string title, std::uint32_t sequences, std::uint32_t length) {
  GraphBuilder builder(std::move(title), {sequences, length});
  if (std::uint64_t{sequences} * length > max_rows) {
    bad_input("model", "{} sequences of {} tokens are more than {} tokens", sequences, length, max_rows);
  }
  builder.graph_.input_kind = InputKind::tokens;
  builder.sequences_.front() = length;
  builder.graph_.operators.front().outputs.front().dtype = DataType::int32;
  return builder;
}

GraphBuilder GraphBuilder::of_stage(std::string title, const Tensor& received, const Peer& from) {
  GraphBuilder builder(std::move(title), received.shape);
  Operator& first = builder.graph_.operators.front();
  first.name = "receive";
  first.kind = OperatorKind::receive;
  first.outputs.front() = received;
  first.peer = from;
  return builder;
}

OperatorId GraphBuilder::append(std::string name, OperatorKind kind, std::vector<Value> inputs, Shape output) {
  if (output.channels() == 0 || output.channels() > max_channels) {
    bad_input("model", "{}: channels, features or classes must be 1 to {}, got {}", name, max_channels,
              output.channels());
  }
  const bool reads_tokens = graph_.input_kind == InputKind::tokens && std::ranges::count(inputs, Value(input())) > 0;
  const bool looks_up = kind == OperatorKind::token_embedding || kind == OperatorKind::position_embedding ||
                        kind == OperatorKind::vector;  // of a network of a file, that looks up other tokens
  if ((reads_tokens && !looks_up) || (!reads_tokens && kind == OperatorKind::token_embedding)) {
    bad_input("model", "{}: {}", name,
              reads_tokens ? "only a token embedding can read the tokens of the input"
                           : "a token embedding reads the input, which must be tokens");
  }
  const std::uint64_t inherited = inputs.empty() ? 1 : strides_[inputs.front().op];
  strides_.push_back(next_stride_ != 0 ? std::exchange(next_stride_, 0) : inherited);
  sequences_.push_back(inputs.empty() ? 0 : sequences_[inputs.front().op]);
  Operator& op = graph_.operators.emplace_back();
  op.name = std::move(name);
  op.kind = kind;
  op.inputs = std::move(inputs);
  op.outputs.push_back({std::move(output), DataType::fp32});
  op.layer = layer_;
  return static_cast<OperatorId>(graph_.operators.size() - 1);
}

void GraphBuilder::add_parameter(OperatorId owner, std::string_view suffix, std::vector<std::uint32_t> shape) {
  Operator& op = graph_.operators[owner];
  op.parameters.push_back(static_cast<std::uint32_t>(graph_.parameters.size()));
  std::uint64_t elements = 1;
  for (const std::uint32_t size : shape) elements *= size;
  parameter_elements_ += elements;
  if (parameter_elements_ > max_parameters) {
    bad_input("model", "{} of {}: the network has more than {} parameters", op.name, graph_.title, max_parameters);
  }
  graph_.parameters.push_back(
      {.name = fmt::format("{}.{}", op.name, suffix), .shape = std::move(shape), .elements = elements, .owner = owner});
}

Shape GraphBuilder::slide(std::string_view name, Value from, const Window& window, std::uint32_t channels) {
  const Shape in = shape(from);
  const Shape& image = graph_.operators.front().shape();
  const std::uint64_t stride = strides_[from.op] * window.stride;
  if (window.stride > 1 && stride > std::min(image.height(), image.width())) {
    bad_input(small_input,
              "{} of {}: an input of {}x{} pixels is smaller than the network's stride up to here, {} (image of {}x{} "
              "left)",
              name, graph_.title, image.height(), image.width(), stride, in.height(), in.width());
  }
  const std::uint64_t padded_height = std::uint64_t{in.height()} + 2 * std::uint64_t{window.padding};
  const std::uint64_t padded_width = std::uint64_t{in.width()} + 2 * std::uint64_t{window.padding};
  if (std::min(padded_height, padded_width) < window.kernel) {
    bad_input(small_input, "{} of {}: a {}x{} window does not fit into an image of {}x{} with padding {}", name,
              graph_.title, window.kernel, window.kernel, in.height(), in.width(), window.padding);
  }
  next_stride_ = stride;
  return {in.batch(), channels, static_cast<std::uint32_t>((padded_height - window.kernel) / window.stride + 1),
          static_cast<std::uint32_t>((padded_width - window.kernel) / window.stride + 1)};
}

OperatorId GraphBuilder::convolution(std::string name, Value from, const ConvolutionOptions& options) {
  const std::uint32_t in_channels = shape(from).channels();
  if (options.groups == 0 || in_channels % options.groups != 0 || options.channels % options.groups != 0) {
    bad_input("model", "{}: {} groups do not divide {} input and {} output channels", name, options.groups, in_channels,
              options.channels);
  }
  const Shape output = slide(name, from, options.window, options.channels);
  const OperatorId id = append(std::move(name), OperatorKind::convolution, {from}, output);
  graph_.operators[id].window = options.window;
  graph_.operators[id].groups = options.groups;
  const std::uint32_t kernel = options.window.kernel;
  add_parameter(id, "weight", {options.channels, in_channels / options.groups, kernel, kernel});
  if (options.bias) add_parameter(id, "bias", {options.channels});
  return id;
}

OperatorId GraphBuilder::batch_norm(std::string name, Value from, double initial_scale) {
  const OperatorId id = append(std::move(name), OperatorKind::batch_norm, {from}, shape(from));
  add_parameter(id, "weight", {shape(id).channels()});
  graph_.parameters.back().initial_scale = initial_scale;
  add_parameter(id, "bias", {shape(id).channels()});
  return id;
}

OperatorId GraphBuilder::max_pool(std::string name, Value from, const Window& window) {
  const Shape output = slide(name, from, window, shape(from).channels());
  const OperatorId id = append(std::move(name), OperatorKind::max_pool, {from}, output);
  graph_.operators[id].window = window;
  return id;
}

OperatorId GraphBuilder::average_pool(std::string name, Value from, std::uint32_t size) {
  Shape output = shape(from);
  output.resize(2, size);
  output.resize(3, size);
  return append(std::move(name), OperatorKind::average_pool, {from}, output);
}

OperatorId GraphBuilder::add(std::string name, Value main, Value shortcut) {
  if (shape(main) != shape(shortcut)) {
    bad_input("model", "{}: cannot add tensors of {} and {}", name, to_string(shape(main)), to_string(shape(shortcut)));
  }
  return append(std::move(name), OperatorKind::add, {main, shortcut}, shape(main));
}

OperatorId GraphBuilder::flatten(std::string name, Value from) {
  const Shape in = shape(from);
  const std::uint64_t features = in.image() * in.channels();
  if (features > max_channels) {
    bad_input("model", "{}: flattening {} gives {} features, more than {}", name, to_string(in), features,
              max_channels);
  }
  return append(std::move(name), OperatorKind::flatten, {from}, {in.batch(), static_cast<std::uint32_t>(features)});
}

std::uint32_t GraphBuilder::features_of(std::string_view name, Value from) const {
  const Shape& in = shape(from);
  if (in.image() != 1) bad_input("model", "{}: needs flat features, got {}", name, to_string(in));
  return in.channels();
}

OperatorId GraphBuilder::linear(std::string name, Value from, std::uint32_t features, bool bias) {
  const std::uint32_t width = features_of(name, from);
  const OperatorId id = append(std::move(name), OperatorKind::linear, {from}, {shape(from).batch(), features});
  add_parameter(id, "weight", {features, width});
  if (bias) add_parameter(id, "bias", {features});
  return id;
}

OperatorId GraphBuilder::dropout(std::string name, Value from, float rate) {
  if (!(rate >= 0 && rate < 1))
    bad_input("model", "{}: the drop rate must be 0 or more and below 1, got {}", name, rate);
  const OperatorId id = append(std::move(name), OperatorKind::dropout, {from}, shape(from));
  graph_.operators[id].drop_rate = rate;
  return id;
}

Shape GraphBuilder::cut(std::string_view name, const Shape& whole, std::uint32_t axis, std::uint32_t parts) const {
  if (axis >= whole.rank() || parts == 0 || whole.size(axis) % parts != 0) {
    bad_input("model", "{}: axis {} of {} cannot be cut into {} equal parts", name, axis, to_string(whole), parts);
  }
  Shape part = whole;
  part.resize(axis, whole.size(axis) / parts);
  return part;
}

OperatorId GraphBuilder::split(std::string name, Value from, std::uint32_t axis, std::uint32_t parts) {
  const Shape part = cut(name, shape(from), axis, parts);
  const OperatorId id = append(std::move(name), OperatorKind::split, {from}, part);
  graph_.operators[id].axis = axis;
  graph_.operators[id].outputs.resize(parts, {part, graph_.tensor(from).dtype});
  return id;
}

OperatorId GraphBuilder::concat(std::string name, const std::vector<Value>& parts, std::uint32_t axis) {
  if (parts.empty()) bad_input("model", "{}: nothing to join", name);
  Shape whole = shape(parts.front());
  if (axis >= whole.rank()) bad_input("model", "{}: {} has no axis {}", name, to_string(whole), axis);
  whole.resize(axis, 0);
  for (const Value part : parts) {
    Shape other = shape(part);
    const std::uint32_t length = other.size(axis);
    if (axis < other.rank()) other.resize(axis, whole.size(axis));
    if (other != whole) {
      bad_input("model", "{}: cannot join {} and {} along axis {}", name, to_string(shape(parts.front())),
                to_string(shape(part)), axis);
    }
    whole.resize(axis, whole.size(axis) + length);
  }
  const OperatorId id = append(std::move(name), OperatorKind::concat, parts, whole);
  graph_.operators[id].axis = axis;
  return id;
}

OperatorId GraphBuilder::append_collective(std::string name, OperatorKind kind, Value from, const Group& group,
                                           Shape output, std::uint32_t axis) {
  if (group.ranks == 0 || group.root >= group.ranks) {
    bad_input("model", "{}: no root {} in a group of {} ranks", name, group.root, group.ranks);
  }
  const OperatorId id = append(std::move(name), kind, {from}, std::move(output));
  graph_.operators[id].group = group;
  graph_.operators[id].axis = axis;
  return id;
}

OperatorId GraphBuilder::slice(std::string name, Value from, const Group& group, std::uint32_t axis) {
  const Shape part = cut(name, shape(from), axis, group.ranks);
  return append_collective(std::move(name), OperatorKind::slice, from, group, part, axis);
}

OperatorId GraphBuilder::all_gather(std::string name, Value from, const Group& group, std::uint32_t axis) {
  Shape whole = cut(name, shape(from), axis, 1);
  whole.resize(axis, whole.size(axis) * group.ranks);
  return append_collective(std::move(name), OperatorKind::all_gather, from, group, whole, axis);
}

OperatorId GraphBuilder::reduce_scatter(std::string name, Value from, const Group& group, std::uint32_t axis) {
  const Shape part = cut(name, shape(from), axis, group.ranks);
  return append_collective(std::move(name), OperatorKind::reduce_scatter, from, group, part, axis);
}

OperatorId GraphBuilder::all_to_all(std::string name, Value from, const Group& group, std::uint32_t cut_axis,
                                    std::uint32_t joined_axis) {
  Shape output = cut(name, cut(name, shape(from), cut_axis, group.ranks), joined_axis, 1);
  output.resize(joined_axis, output.size(joined_axis) * group.ranks);
  const OperatorId id = append_collective(std::move(name), OperatorKind::all_to_all, from, group, output, cut_axis);
  graph_.operators[id].joined_axis = joined_axis;
  return id;
}

void GraphBuilder::send(std::string name, Value from, const Peer& to) {
  const OperatorId id = append(std::move(name), OperatorKind::send, {from}, shape(from));
  graph_.operators[id].outputs.clear();
  graph_.operators[id].peer = to;
}

OperatorId GraphBuilder::receive(std::string name, const Tensor& what, const Peer& from) {
  const OperatorId id = append(std::move(name), OperatorKind::receive, {}, what.shape);
  graph_.operators[id].outputs.front() = what;
  graph_.operators[id].peer = from;
  return id;
}

Graph GraphBuilder::finish_sum(const std::vector<Value>& logits) && {
  append("loss", OperatorKind::loss, logits, {1, 1});
  return std::move(*this).finish();
}

Graph GraphBuilder::finish_binary(Value logits) && {
  if (features_of("loss", logits) != 1) {
    bad_input("model", "loss: one logit per row is needed, got {}", to_string(shape(logits)));
  }
  append("loss", OperatorKind::binary_loss, {logits}, {1, 1});
  return std::move(*this).finish();
}

Graph GraphBuilder::finish() && {
  std::vector<bool> read(graph_.operators.size(), false);
  for (const Operator& op : graph_.operators) {
    for (const Value input : op.inputs) read[input.op] = true;
  }
  for (OperatorId id = 0; id < read.size(); ++id) {
    const Operator& op = graph_.operators[id];
    const bool ends = id + 1 == read.size() || op.kind == OperatorKind::send;
    if (!read[id] && !ends) bad_input("model", "{}: nobody reads what it computes", op.name);
  }
  return std::move(graph_);
}

}  // namespace hcclsim::models
