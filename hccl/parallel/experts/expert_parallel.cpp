#include "hccl/parallel/experts/expert_parallel.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/device_families.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Value;

/// Writes the network anew, with all_to_alls around the experts.
class ExpertCut {
 public:
  ExpertCut(const ShardedGraph& network, const ExpertParallel& options, models::Group group)
      : whole_(network.graph),
        first_value_(whole_.first_values()),
        values_before_(network.values),
        options_(options),
        group_(group) {}

  [[nodiscard]] Graph run() {
    cut_ = whole_;
    cut_.operators.clear();
    works_on_rows_.resize(whole_.operators.size(), false);
    for (OperatorId id = 0; id < whole_.operators.size(); ++id) add(id);
    for (models::Parameter& parameter : cut_.parameters) parameter.owner = number_of_[parameter.owner].op;
    return std::move(cut_);
  }
  /// As ShardedGraph has them. Of what experts work on, and what is on its way, nothing is known.
  [[nodiscard]] std::vector<std::optional<TensorLayout>> values() { return std::move(values_); }

 private:
  void add(OperatorId id) {
    const Operator& before = whole_.operators[id];
    Operator op = before;
    if (op.original == models::no_original) op.original = id;
    for (Value& input : op.inputs) input = {number_of_[input.op].op, input.output};
    if (op.kind == OperatorKind::combine) op.inputs.front() = add_way_back(before);
    const bool behind_rows = !op.inputs.empty() && works_on_rows_[before.inputs.front().op];
    works_on_rows_[id] = op.kind == OperatorKind::dispatch || (behind_rows && op.kind != OperatorKind::combine);
    if (works_on_rows_[id] && op.kind != OperatorKind::dispatch) cut_rows(before, op);
    number_of_.push_back(append(std::move(op)));
    if (!works_on_rows_[id] || before.kind == OperatorKind::dispatch) {
      std::copy_n(&values_before_[first_value_[id]], before.outputs.size(), values_.end() - before.outputs.size());
    }
    if (before.kind == OperatorKind::dispatch) number_of_.back() = add_way_there(before);
  }

  Value append(Operator op) {
    values_.resize(values_.size() + op.outputs.size());
    cut_.operators.push_back(std::move(op));
    return {static_cast<OperatorId>(cut_.operators.size() - 1)};
  }

  /// Shapes of an operator on rows, and of its weight, if it has one.
  void cut_rows(const Operator& before, Operator& op) {
    for (models::Tensor& output : op.outputs) output.shape = rows_of_device(before, output.shape);
    for (const std::uint32_t number : op.parameters) {
      models::Parameter& weight = cut_.parameters[number];
      weight.shape.front() /= options_.ranks;
      weight.elements /= options_.ranks;
    }
  }

  /// The dispatch whose rows an operator works on.
  [[nodiscard]] const Operator& dispatch_before(const Operator& op) const {
    const Operator* before = &op;
    while (before->kind != OperatorKind::dispatch) before = &whole_.operators[before->inputs.front().op];
    return *before;
  }

  /// Rows that each device sends to each expert.
  [[nodiscard]] std::vector<std::uint64_t> load_of(const Operator& dispatch) const {
    const models::Shape& rows = dispatch.shape();
    return expert_load(options_.load, dispatch.layer, rows.size(0), std::uint64_t{rows.size(0)} * rows.size(1));
  }
  /// Of them, those to each device.
  [[nodiscard]] std::vector<std::uint64_t> load_of_devices(const Operator& dispatch) const {
    const std::vector<std::uint64_t> load = load_of(dispatch);
    std::vector<std::uint64_t> sums(options_.ranks, 0);
    for (std::size_t e = 0; e < load.size(); ++e) sums[e / (load.size() / options_.ranks)] += load[e];
    return sums;
  }
  [[nodiscard]] bool is_skewed(const Operator& dispatch) const { return dispatch.dropless && options_.load.skew > 0; }

  /// What the device with the most rows has of a tensor of rows.
  [[nodiscard]] models::Shape rows_of_device(const Operator& op, models::Shape shape) const {
    const Operator& dispatch = dispatch_before(op);
    const std::uint32_t experts = shape.size(0) / options_.ranks;
    std::uint64_t rows = std::uint64_t{shape.size(1)} * options_.ranks;
    if (is_skewed(dispatch)) {
      // Rows that devices of an expert's features have put together are so many times those of one.
      const std::uint64_t gathered = shape.size(1) / dispatch.shape().size(1);
      const std::uint64_t most = std::ranges::max(load_of_devices(dispatch)) * options_.ranks;
      rows = (most + experts - 1) / experts * gathered;
    }
    shape.resize(0, experts);
    shape.resize(1, static_cast<std::uint32_t>(rows));
    return shape;
  }

  [[nodiscard]] Operator way(const Operator& like, Value from, bool there) const {
    Operator op;
    op.name = like.name + ".all_to_all";
    op.kind = OperatorKind::all_to_all;
    op.inputs.push_back(from);
    op.axis = there ? 0 : 1;
    op.joined_axis = there ? 1 : 0;
    op.group = group_;
    op.layer = like.layer;
    op.chunk = like.chunk;
    op.recompute = like.recompute;
    return op;
  }

  /// Elements from each device to each other; `features` of a row. All devices send alike.
  [[nodiscard]] std::vector<std::uint64_t> counts_of(const Operator& dispatch, std::uint32_t features,
                                                     bool there) const {
    if (!is_skewed(dispatch)) return {};
    const std::vector<std::uint64_t> load = load_of_devices(dispatch);
    std::vector<std::uint64_t> counts;
    for (Rank from = 0; from < options_.ranks; ++from) {
      for (Rank to = 0; to < options_.ranks; ++to) counts.push_back(load[there ? to : from] * features);
    }
    return counts;
  }

  Value add_way_there(const Operator& dispatch) {
    Operator op = way(dispatch, number_of_.back(), true);
    op.outputs.push_back(dispatch.outputs.front());
    op.outputs.front().shape = rows_of_device(dispatch, dispatch.shape());
    op.counts = counts_of(dispatch, dispatch.shape().size(2), true);
    return append(std::move(op));
  }

  Value add_way_back(const Operator& combine) {
    const Value rows = combine.inputs.front();
    Operator op = way(combine, {number_of_[rows.op].op, rows.output}, false);
    op.outputs.push_back(whole_.tensor(rows));
    op.counts = counts_of(dispatch_before(whole_.operators[rows.op]), op.shape().size(2), false);
    return append(std::move(op));
  }

  const Graph& whole_;
  std::vector<std::uint32_t> first_value_;
  const std::vector<std::optional<TensorLayout>>& values_before_;
  ExpertParallel options_;
  models::Group group_;
  Graph cut_;
  std::vector<std::optional<TensorLayout>> values_;
  std::vector<Value> number_of_;     ///< of operators of the whole: what others read in their place
  std::vector<bool> works_on_rows_;  ///< of operators of the whole
};

/// The weights of experts.
std::vector<std::uint32_t> expert_weights(const Graph& graph) {
  std::vector<std::uint32_t> weights;
  for (const Operator& op : graph.operators) {
    if (op.kind == OperatorKind::expert_linear) weights.push_back(op.parameters.front());
  }
  return weights;
}

void check_options(const Graph& graph, const ExpertParallel& options) {
  bool dropless = false;
  std::uint32_t experts = 0;
  for (const Operator& op : graph.operators) {
    if (op.kind != OperatorKind::dispatch) continue;
    experts = op.shape().size(0);
    dropless = op.dropless;
    if (options.ranks == 0 || experts % options.ranks != 0) {
      bad_input("option", "{} ranks cannot share the {} experts of {}; give a divisor", options.ranks, experts,
                op.name);
    }
  }
  if (experts == 0) bad_input("option", "{} has no experts that ranks could share", graph.title);
  if (options.load.skew > 0 && !dropless) {
    bad_input("option", "experts of {} have a capacity, so that their load does not matter; skew dropless ones",
              graph.title);
  }
}

/// The axes of the devices along which the rows of a weight are cut, counted from the right, the next neighbours first.
std::vector<std::uint32_t> axes_of_rows(const ShardedGraph& network, std::uint32_t weight) {
  const OperatorId owner = network.graph.parameters[weight].owner;
  const std::optional<TensorLayout>& rows = network.values[network.graph.first_values()[owner]];
  std::vector<std::uint32_t> axes;
  if (!rows.has_value()) return axes;
  for (std::size_t axis = 1; axis + 1 < rows->map.size(); ++axis) {
    axes.insert(axes.end(), rows->map[axis].begin(), rows->map[axis].end());
  }
  std::erase_if(axes, [&](std::uint32_t axis) { return rows->devices.size_from_right(axis) == 1; });
  std::ranges::sort(axes);
  return axes;
}

/// Makes two axes of the devices of one: the right one of `size`.
void split_axis(TensorLayout& layout, std::uint32_t axis, std::uint32_t size) {
  for (std::vector<std::uint32_t>& by : layout.map) {
    for (std::uint32_t& other : by) other += other > axis ? 1 : 0;
  }
  std::vector<std::uint32_t>& sizes = layout.devices.sizes;
  const std::size_t left = sizes.size() - 1 - axis;
  sizes[left] /= size;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(left) + 1, size);
}

/// Cuts the first axis of a weight over `ranks` neighbours along axes of the devices that do not cut it. Returns the
/// axes of these neighbours; none if they cannot be divided.
std::vector<std::uint32_t> cut_layout(TensorLayout& layout, const std::vector<std::uint32_t>& along, Rank ranks) {
  std::vector<std::uint32_t> taken;
  for (const std::uint32_t axis : along) {
    if (ranks == 1) break;
    const std::uint32_t size = layout.devices.size_from_right(axis);
    taken.push_back(axis);
    if (ranks % size != 0 && size % ranks == 0)
      split_axis(layout, axis, ranks);
    else if (ranks % size != 0)
      return {};
    ranks /= layout.devices.size_from_right(axis);
  }
  if (ranks > 1) return {};
  // The left one counts most, as experts follow each other along the neighbours.
  layout.map.front().insert(layout.map.front().end(), taken.rbegin(), taken.rend());
  return taken;
}

}  // namespace

ShardedGraph share_experts(ShardedGraph network, const ExpertParallel& options) {
  check_options(network.graph, options);
  if (options.ranks == 1) return network;
  if (network.mirrors.empty()) internal_error("the samples of {} have not been cut", network.graph.title);
  DeviceFamilies families(network.families);
  models::Group neighbours;
  for (const std::uint32_t weight : expert_weights(network.graph)) {
    const std::string& name = network.graph.parameters[weight].name;
    TensorLayout& layout = network.parameters[weight];
    const std::vector<std::uint32_t> along = axes_of_rows(network, weight);
    std::uint32_t replicas = 1;
    for (const std::uint32_t axis : along) replicas *= layout.devices.size_from_right(axis);
    const std::vector<std::uint32_t> axes = cut_layout(layout, along, options.ranks);
    if (axes.empty()) {
      bad_input("option", "{}: {} ranks cannot share experts where {} have rows of their own; give a divisor", name,
                options.ranks, replicas);
    }
    const models::Group group = families.group_along(layout.devices, axes);
    if (neighbours.ranks == 1) neighbours = group;
    if (group.family != neighbours.family) {
      bad_input("option", "{}: its experts would be shared by other devices than those of the layers before", name);
    }
    const models::Group mirror = families.copies_of(layout);
    network.mirrors[weight] = mirror.ranks > 1 ? mirror.family : ShardedGraph::no_family;
  }
  ExpertCut cut(network, options, neighbours);
  network.graph = cut.run();
  network.values = cut.values();
  return network;
}

}  // namespace hcclsim::hccl
