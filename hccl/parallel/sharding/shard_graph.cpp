#include "hccl/parallel/sharding/shard_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/parallel/sharding/device_families.hpp"
#include "hccl/parallel/sharding/dimension_strategy.hpp"
#include "hccl/parallel/sharding/folded_shape.hpp"
#include "hccl/parallel/sharding/halo.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Shape;
using models::Value;

OperatorKind kind_of(RedistributionKind kind) {
  switch (kind) {
    case RedistributionKind::all_to_all:
      return OperatorKind::all_to_all;
    case RedistributionKind::all_gather:
      return OperatorKind::all_gather;
    case RedistributionKind::slice:
      return OperatorKind::slice;
    case RedistributionKind::reduce_scatter:
      return OperatorKind::reduce_scatter;
    default:
      internal_error("a redistribution does not do {}", name_of(kind));
  }
}

class Sharder {
 public:
  Sharder(const Graph& whole, const StrategyMap& strategies, Rank devices, const ShardOptions& options)
      : whole_(whole), graph_(whole), options_(options), held_(whole.first_values().back()) {
    first_value_ = whole.first_values();
    result_.devices = devices;
    result_.graph.title = whole.title;
    result_.graph.input_kind = whole.input_kind;
    result_.graph.layers = whole.layers;
    result_.graph.parameters = whole.parameters;
    result_.parameters.resize(whole.parameters.size());
    result_.mirrors.assign(whole.parameters.size(), ShardedGraph::no_family);
    apply(strategies);
  }

  ShardedGraph run() {
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      if (graph_.operators[id].kind == OperatorKind::input) {
        write_input(id);
      } else {
        write(id);
      }
    }
    gather_results();
    return std::move(result_);
  }

 private:
  /// What the devices have of a value of the whole graph.
  struct Held {
    Value value{0};
    TensorLayout layout;
  };

  void apply(const StrategyMap& strategies) {
    std::size_t used = 0;
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      const Operator& op = graph_.operators[id];
      if (op.kind == OperatorKind::input) {
        shardings_.emplace_back();
        continue;
      }
      const auto found = strategies.find(op.name);
      if (found != strategies.end()) ++used;
      const auto strategy = found != strategies.end() ? std::optional(found->second) : follow(op, id);
      shardings_.push_back(shard_operator(whole_, id, strategy.has_value() ? &*strategy : nullptr, result_.devices));
    }
    if (used == strategies.size()) return;
    for (const auto& [name, strategy] : strategies) {
      const auto op = std::ranges::find(graph_.operators, name, &Operator::name);
      if (op != graph_.operators.end() && op->kind != OperatorKind::input) continue;
      bad_input("strategy", "{}: {} has no operator of this name that could be cut as {}", name, graph_.title,
                to_string(strategy));
    }
  }

  /// A reshape leaves its tensor where it is, if it can.
  [[nodiscard]] std::optional<OperatorStrategy> follow(const Operator& op, OperatorId id) const {
    if (op.kind != OperatorKind::reshape || shardings_[op.inputs.front().op].outputs.size() != 1) return std::nullopt;
    return following(whole_.signature(id), shardings_[op.inputs.front().op].result());
  }

  /// What a network without a loss gives is laid out as its batch is read: whole, or a part of the samples. Other cuts
  /// of the batch change nothing.
  void gather_results() {
    const auto computes_loss = [](const Operator& op) {
      return op.kind == OperatorKind::loss || op.kind == OperatorKind::binary_loss;
    };
    const std::optional<Cuts>& cuts = options_.dataset;
    if (!cuts.has_value() || std::ranges::any_of(graph_.operators, computes_loss)) return;
    const bool whole = std::ranges::all_of(*cuts, [](std::uint32_t cut) { return cut == 1; });
    if (!whole && cuts->front() != result_.devices) return;
    const std::vector<std::uint32_t> readers = graph_.consumer_counts();
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      for (std::uint32_t output = 0; output < graph_.operators[id].outputs.size(); ++output) {
        const Value value(id, output);
        if (readers[number_of(value)] > 0) continue;
        TensorLayout layout = replicated({{static_cast<std::uint32_t>(result_.devices)}}, held(value).layout.shape);
        if (!whole && layout.shape.size(0) % result_.devices == 0) layout.map.front() = {0};
        Operator reader = graph_.operators[id];
        reader.name += ".output";
        redistributed(reader, value, layout, false);
      }
    }
  }

  // Families and values. -----------------------------------------------------------------------------------------

  [[nodiscard]] std::uint32_t number_of(Value value) const { return first_value_[value.op] + value.output; }
  [[nodiscard]] Held& held(Value value) { return held_[number_of(value)]; }

  [[nodiscard]] const Shape& shape_of(Value local) const { return result_.graph.tensor(local).shape; }

  /// Appends an operator; all its outputs have the layouts, as far as there are any.
  OperatorId add(Operator op, std::vector<std::optional<TensorLayout>> layouts) {
    std::uint32_t& uses = names_[op.name];
    if (++uses > 1) op.name = fmt::format("{}_{}", op.name, uses);
    layouts.resize(op.outputs.size());
    std::ranges::move(layouts, std::back_inserter(result_.values));
    result_.graph.operators.push_back(std::move(op));
    return static_cast<OperatorId>(result_.graph.operators.size() - 1);
  }

  /// An operator between those of the whole graph.
  [[nodiscard]] Operator between(const Operator& op, std::string_view what, OperatorKind kind, Value from,
                                 const Shape& output) const {
    Operator made;
    made.name = fmt::format("{}.{}", op.name, what);
    made.kind = kind;
    made.inputs = {from};
    made.outputs = {{output, result_.graph.tensor(from).dtype}};
    made.layer = op.layer;
    made.chunk = op.chunk;
    return made;
  }

  Value reshaped(const Operator& op, Value from, const Shape& shape, bool again) {
    if (shape_of(from) == shape) return from;
    Operator made = between(op, "reshape", OperatorKind::reshape, from, shape);
    made.recompute = again;
    return add(std::move(made), {});
  }

  // Redistribution. ----------------------------------------------------------------------------------------------

  Value step(const Operator& op, Value from, const RedistributionStep& step, bool again) {
    from = reshaped(op, from, without_ones(step.before, step.after), again);
    const OperatorKind kind = kind_of(step.kind);
    Operator made =
        between(op, fmt::format("input.{}", name_of(step.kind)), kind, from, without_ones(step.after, step.before));
    const std::uint32_t axis = kind == OperatorKind::all_to_all ? step.split_dim : step.dim;
    made.axis = axis_without_ones(step.before, step.after, axis);
    made.joined_axis = axis_without_ones(step.before, step.after, step.concat_dim);
    made.group = families_.group_along(step.devices, {step.axis});
    made.recompute = again;
    return add(std::move(made), {});
  }

  /// What `op` reads of a value of the whole graph, in its layout.
  Value redistributed(const Operator& op, Value value, const TensorLayout& to, bool again) {
    const Held& from = held(value);
    const auto key = std::pair(number_of(value), to_string(to) + models::to_string(to.shape));
    const auto made = redistributed_.find(key);
    if (made != redistributed_.end()) return made->second.value;
    // An adapter reads what the product beside it reads.
    auto it = op.adapter ? redistributed_.lower_bound({key.first, ""}) : redistributed_.end();
    for (; it != redistributed_.end() && it->first.first == key.first; ++it) {
      const auto& [known, layout] = it->second;
      if (layout.slice_shape() == to.slice_shape() && redistribute(layout, to, {}).empty()) return known;
    }
    std::vector<RedistributionStep> steps =
        redistribute(from.layout, to, {.all_to_all = options_.enable_alltoall, .own_axes = true});
    std::erase_if(steps, [](const RedistributionStep& step) { return step.kind == RedistributionKind::reshape; });
    Value now = from.value;
    for (const RedistributionStep& one : steps) now = step(op, now, one, again);
    now = reshaped(op, now, folded(graph_.tensor(value).shape, to.shape, to.slice_shape()), again);
    if (!steps.empty()) result_.values.back() = to;
    redistributed_.emplace(key, Held{now, to});
    return now;
  }

  // Operators. ---------------------------------------------------------------------------------------------------

  void write_input(OperatorId id) {
    Held& input = held(id);
    input.layout = input_layout(id);
    Operator op = graph_.operators[id];
    op.original = id;
    op.outputs.front().shape = folded(op.shape(), input.layout.shape, input.layout.slice_shape());
    input.value = add(std::move(op), {input.layout});
  }

  [[nodiscard]] TensorLayout input_layout(OperatorId id) const {
    const Shape shape = whole_.view(id);
    if (options_.dataset.has_value()) return dataset_layout(shape, *options_.dataset);
    for (OperatorId reader = id + 1; reader < graph_.operators.size(); ++reader) {
      const std::vector<Value>& inputs = graph_.operators[reader].inputs;
      const auto input = std::ranges::find(inputs, Value(id));
      if (input != inputs.end()) return shardings_[reader].inputs[static_cast<std::size_t>(input - inputs.begin())];
    }
    return replicated({{static_cast<std::uint32_t>(result_.devices)}}, shape);
  }

  [[nodiscard]] TensorLayout dataset_layout(const Shape& shape, const Cuts& cuts) const {
    std::uint64_t parts = 1;
    for (const std::uint32_t cut : cuts) parts *= cut;
    if (cuts.size() != shape.rank() || parts == 0 || result_.devices % parts != 0) {
      bad_input("strategy", "the batch ({}) cannot be read in ({}) parts by {} devices", models::to_string(shape),
                fmt::join(cuts, ","), result_.devices);
    }
    TensorLayout layout{{{static_cast<std::uint32_t>(result_.devices / parts)}}, {}, shape};
    layout.devices.sizes.insert(layout.devices.sizes.end(), cuts.begin(), cuts.end());
    for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
      layout.map.emplace_back();
      if (cuts[axis] > 1) layout.map.back() = {static_cast<std::uint32_t>(cuts.size() - 1 - axis)};
    }
    check_layout(layout, "the batch");
    return layout;
  }

  void write(OperatorId id) {
    const OperatorSharding& sharding = shardings_[id];
    Operator op = graph_.operators[id];
    op.original = id;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      op.inputs[i] = redistributed(graph_.operators[id], op.inputs[i], sharding.inputs[i], sharding.gathers_again);
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const TensorLayout& layout = sharding.outputs[i];
      op.outputs[i].shape = folded(op.outputs[i].shape, layout.shape, layout.slice_shape());
    }
    adapt(op, sharding);
    add_borders(op, id, sharding);
    const bool bias_follows = !sharding.partial.empty() && has_bias(op);
    std::vector<std::uint32_t> later;
    if (bias_follows) {
      later = {op.parameters.back()};
      op.parameters.pop_back();
    }
    for (std::size_t i = 0; i < sharding.parameters.size(); ++i) {
      hold(graph_.operators[id].parameters[i], sharding.parameters[i], id);
    }
    std::vector<std::optional<TensorLayout>> layouts(sharding.outputs.begin(), sharding.outputs.end());
    OperatorId own = add(op, layouts);
    own_parameters(op.parameters, id, own);
    if (sharding.on_host) {
      check_host_table(op);
      own = add(between(graph_.operators[id], "host_copy", OperatorKind::host_copy, own, op.shape()), layouts);
    }
    Value made = sum(graph_.operators[id], own, sharding);
    if (bias_follows) made = add_bias(id, made, std::move(later), sharding);
    keep(id, own, made, sharding);
  }

  /// What a layout changes in the fields of an operator.
  void adapt(Operator& op, const OperatorSharding& sharding) {
    const std::uint32_t positions = sharding.cut("positions");
    if (op.sequence % positions == 0) op.sequence /= positions;
    op.heads /= std::min(op.heads, sharding.cut("heads"));
    op.kv_heads /= std::min(op.kv_heads, sharding.cut("heads"));
    const OperatorRule& rule = *rule_of(op.kind);
    op.group = families_.divided(families_.group_of_parts(sharding, rule.group), sharding.group_size);
    if (rule.share != nullptr) rule.share(op, sharding.cut("batch"));
    if (op.kind == OperatorKind::token_embedding) op.row_parts = sharding.parameters.front().rows;
    op.on_host = sharding.on_host;
    if (op.kind == OperatorKind::loss || op.kind == OperatorKind::binary_loss) adapt_loss(op, sharding);
    if (op.kind == OperatorKind::route) op.loss_parts.push_back({{}, 1.0 / static_cast<double>(result_.devices)});
  }

  /// Devices with the same rows of all classes compute the same loss.
  void adapt_loss(Operator& op, const OperatorSharding& sharding) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorLayout& logits = sharding.inputs[i];
      const std::string_view classes =
          sharding.signature.dimensions[sharding.signature.inputs[i].dimensions.back()].name;
      std::uint64_t rows = 1;
      for (std::size_t axis = 0; axis + 1 < logits.map.size(); ++axis) rows *= logits.cuts(axis);
      const std::uint64_t computed = result_.devices / sharding.cut(classes);
      op.loss_parts.push_back({families_.group_of_parts(sharding, {classes}),
                               1.0 / static_cast<double>(options_.loss_repeated_mean ? computed : rows),
                               static_cast<std::uint32_t>(result_.devices / rows)});
    }
  }

  [[nodiscard]] static bool has_bias(const Operator& op) {
    const bool product = op.kind == OperatorKind::linear || op.kind == OperatorKind::convolution;
    return product ? op.parameters.size() > 1 : op.kind == OperatorKind::sum_rows && !op.parameters.empty();
  }

  /// Pixels of neighbours around images that are cut, and zeros around the other axis in the place of padding.
  void add_borders(Operator& op, OperatorId id, const OperatorSharding& sharding) {
    const bool windows = op.kind == OperatorKind::convolution || op.kind == OperatorKind::max_pool;
    if (!windows || sharding.cut("height") * sharding.cut("width") == 1) return;
    const Operator& whole = graph_.operators[id];
    const Shape& in = graph_.input_of(whole);
    const auto border_of = [&](std::uint32_t axis) {
      const std::uint32_t parts = sharding.cut(name_of_pixels(axis));
      if (parts == 1) return models::Border{op.window.padding, op.window.padding};
      return border_of_part(op.name, op.window, in.size(axis), whole.shape().size(axis), parts);
    };
    const models::Border rows = border_of(height_axis);
    const models::Border columns = border_of(width_axis);
    const bool any = rows != models::Border{} || columns != models::Border{};
    if (any && op.kind == OperatorKind::max_pool) check_zeros(whole);
    const std::optional<models::Group> grid = group_of_grid(sharding);
    if (any && grid.has_value()) {
      op.inputs.front() = with_neighbours(whole, op.inputs.front(), rows, columns, *grid, sharding.cut("width"));
    } else {
      op.inputs.front() = with_border(whole, op.inputs.front(), height_axis, rows, sharding);
      op.inputs.front() = with_border(whole, op.inputs.front(), width_axis, columns, sharding);
    }
    op.window.padding = 0;
  }

  static constexpr std::uint32_t height_axis = 2;
  static constexpr std::uint32_t width_axis = 3;

  static std::string_view name_of_pixels(std::uint32_t axis) { return axis == height_axis ? "height" : "width"; }

  /// The group of the parts of images that are cut along both axes, row by row; none if only one is cut, or if the
  /// devices of a row do not follow each other.
  std::optional<models::Group> group_of_grid(const OperatorSharding& sharding) {
    if (sharding.cut("height") == 1 || sharding.cut("width") == 1) return std::nullopt;
    std::vector<std::uint32_t> axes = sharding.axes[sharding.signature.find("height")];
    const std::vector<std::uint32_t>& columns = sharding.axes[sharding.signature.find("width")];
    axes.insert(axes.end(), columns.begin(), columns.end());
    if (!std::ranges::is_sorted(axes, std::greater<>())) return std::nullopt;
    return families_.group_along(sharding.matrix, std::move(axes));
  }

  /// Pixels of up to eight neighbours around an image, in one exchange.
  Value with_neighbours(const Operator& whole, Value from, models::Border rows, models::Border columns,
                        const models::Group& grid, std::uint32_t parts_of_row) {
    Shape larger = shape_of(from);
    larger.resize(height_axis, larger.size(height_axis) + rows.before + rows.behind);
    larger.resize(width_axis, larger.size(width_axis) + columns.before + columns.behind);
    Operator made = between(whole, "neighbour_exchange", OperatorKind::neighbour_exchange, from, larger);
    made.axis = height_axis;
    made.border = rows;
    made.columns = parts_of_row;
    made.column_border = columns;
    made.group = grid;
    return add(std::move(made), {});
  }

  /// Pixels before and behind an image along one axis: of neighbours if it is cut, else zeros.
  Value with_border(const Operator& whole, Value from, std::uint32_t axis, models::Border border,
                    const OperatorSharding& sharding) {
    if (border == models::Border{}) return from;
    const std::string_view name = name_of_pixels(axis);
    const bool cut = sharding.cut(name) > 1;
    const OperatorKind kind = cut ? OperatorKind::neighbour_exchange : OperatorKind::pad;
    Shape larger = shape_of(from);
    larger.resize(axis, larger.size(axis) + border.before + border.behind);
    Operator made = between(whole, fmt::format("{}.{}", name, models::name_of(kind)), kind, from, larger);
    made.axis = axis;
    made.border = border;
    if (cut) made.group = families_.group_of_parts(sharding, {name});
    return add(std::move(made), {});
  }

  /// Zeros at the ends of an image are no maxima if nothing is below them.
  void check_zeros(const Operator& op) const {
    const OperatorKind before = graph_.operators[op.inputs.front().op].kind;
    if (before == OperatorKind::relu || before == OperatorKind::relu6) return;
    bad_input("strategy", "{}: images can be cut along height and width only behind a ReLU, not behind {}", op.name,
              graph_.operators[op.inputs.front().op].name);
  }

  /// Notes how the devices hold a parameter.
  void hold(std::uint32_t index, const TensorLayout& layout, OperatorId id) {
    models::Parameter& parameter = result_.graph.parameters[index];
    TensorLayout& known = result_.parameters[index];
    if (!known.map.empty()) {
      if (known.rows != layout.rows || !redistribute(known, layout, {}).empty()) {
        bad_input("strategy", "{}: parameter {} is cut as {}, by {} as {}; all must cut it alike",
                  graph_.operators[id].name, parameter.name, to_string(layout),
                  graph_.operators[graph_.parameters[index].owner].name, to_string(known));
      }
      return;
    }
    known = layout;
    const Shape local = folded(Shape(parameter.shape), layout.shape, layout.slice_shape());
    parameter.shape = local.sizes();
    parameter.elements = local.elements();
    parameter.original = index;
    const models::Group copies = families_.group_along(layout.devices, axes_of_copies(layout));
    if (copies.ranks > 1) result_.mirrors[index] = copies.family;
  }

  /// Axes of the devices that do not cut a tensor.
  [[nodiscard]] static std::vector<std::uint32_t> axes_of_copies(const TensorLayout& layout) {
    std::vector<std::uint32_t> axes(layout.devices.sizes.size());
    std::iota(axes.begin(), axes.end(), 0U);
    for (const std::vector<std::uint32_t>& cut : layout.map) {
      for (const std::uint32_t axis : cut) std::erase(axes, axis);
    }
    return axes;
  }

  /// Nobody else can read what the host has.
  void check_host_table(const Operator& op) const {
    for (const Operator& other : graph_.operators) {
      if (other.name == op.name ||
          std::ranges::find(other.parameters, op.parameters.front()) == other.parameters.end()) {
        continue;
      }
      bad_input("strategy", "{}: its table is also that of {}, which the NPU computes: it cannot be on the host",
                op.name, other.name);
    }
  }

  void own_parameters(const std::vector<std::uint32_t>& parameters, OperatorId id, OperatorId own) {
    for (const std::uint32_t index : parameters) {
      if (graph_.parameters[index].owner == id) result_.graph.parameters[index].owner = own;
    }
  }

  /// Adds up what an operator left.
  Value sum(const Operator& op, OperatorId own, const OperatorSharding& sharding) {
    if (sharding.partial.empty()) return own;
    const models::Group group = families_.group_along(sharding.matrix, sharding.partial);
    const Shape left = shape_of(own);
    if (!sharding.scattered.has_value()) {
      Operator made = between(op, "all_reduce", OperatorKind::all_reduce, own, left);
      made.group = group;
      return add(std::move(made), {sharding.result()});
    }
    const TensorLayout result = sharding.result();
    const Shape before = sharding.outputs.front().slice_shape();
    const Shape after = result.slice_shape();
    const Value from = reshaped(op, own, without_ones(before, after), false);
    Operator made = between(op, "reduce_scatter", OperatorKind::reduce_scatter, from, without_ones(after, before));
    made.axis = axis_without_ones(before, after, *sharding.scattered);
    made.group = group;
    const Value scattered = add(std::move(made), {result});
    const Value whole = reshaped(op, scattered, folded(op.shape(), result.shape, after), false);
    result_.values.back() = result;
    return whole;
  }

  Value add_bias(OperatorId id, Value from, std::vector<std::uint32_t> parameters, const OperatorSharding& sharding) {
    Operator made = between(graph_.operators[id], "bias", OperatorKind::bias, from, shape_of(from));
    made.parameters = std::move(parameters);
    made.original = id;
    const std::vector<std::uint32_t> added = made.parameters;
    const OperatorId own = add(std::move(made), {sharding.result()});
    own_parameters(added, id, own);
    return own;
  }

  void keep(OperatorId id, OperatorId own, Value made, const OperatorSharding& sharding) {
    for (std::uint32_t output = 0; output < sharding.outputs.size(); ++output) {
      held(Value(id, output)) = {Value(own, output), sharding.outputs[output]};
    }
    if (!sharding.outputs.empty()) held(id) = {made, sharding.result()};
  }

  WholeGraph whole_;
  const Graph& graph_;
  ShardOptions options_;
  std::vector<OperatorSharding> shardings_;  // of operators
  std::vector<std::uint32_t> first_value_;
  std::vector<Held> held_;  // of values of the whole graph
  std::map<std::pair<std::uint32_t, std::string>, Held> redistributed_;
  std::map<std::string, std::uint32_t> names_;  // how often each has been given
  ShardedGraph result_;
  DeviceFamilies families_{result_.families};
};

}  // namespace

ShardedGraph shard_graph(const Graph& whole, const StrategyMap& strategies, Rank devices, const ShardOptions& options) {
  if (devices == 0) bad_input("strategy", "a graph is cut over 1 or more devices, got 0");
  return Sharder(whole, strategies, devices, options).run();
}

}  // namespace hcclsim::hccl
