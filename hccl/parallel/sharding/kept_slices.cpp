#include "hccl/parallel/sharding/kept_slices.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hccl/parallel/sharding/device_families.hpp"

namespace hcclsim::hccl {
namespace {

using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Value;

/// Writes the operators of a stage anew, with those that keep slices between them.
class KeptSlices {
 public:
  explicit KeptSlices(ShardedGraph& stage)
      : stage_(stage), families_(stage.families), first_value_(stage.graph.first_values()) {
    for (const Operator& op : stage.graph.operators) {
      if (op.recompute && op.layer != models::no_layer) layers_.insert(op.layer);
    }
  }

  void run() {
    std::vector<OperatorId> place(stage_.graph.operators.size());
    for (OperatorId id = 0; id < place.size(); ++id) {
      Operator op = stage_.graph.operators[id];
      for (Value& input : op.inputs) {
        const std::optional<Value> kept = gathered(input, op);
        input = kept.value_or(Value(new_place_.at(input.op), input.output));
      }
      place[id] = add(std::move(op), values_of(id));
      new_place_[id] = place[id];
    }
    for (models::Parameter& parameter : stage_.graph.parameters) parameter.owner = place[parameter.owner];
    stage_.graph.operators = std::move(operators_);
    stage_.values = std::move(values_);
  }

 private:
  using Layouts = std::vector<std::optional<TensorLayout>>;

  /// What a reader of a recomputed layer reads in the place of a value from outside; none: the value itself.
  std::optional<Value> gathered(Value value, const Operator& reader) {
    const Operator& maker = stage_.graph.operators[value.op];
    const bool starts = layers_.contains(reader.layer) && maker.layer != reader.layer;
    const std::optional<TensorLayout>& layout = stage_.values[first_value_[value.op] + value.output];
    if (!starts || maker.kind == OperatorKind::input || !layout.has_value()) return std::nullopt;
    const auto key = std::pair(reader.layer, first_value_[value.op] + value.output);
    if (const auto made = gathered_.find(key); made != gathered_.end()) return made->second;
    const std::uint32_t ranks = layout->copies();
    const models::Tensor& whole = maker.outputs[value.output];
    if (ranks == 1 || whole.shape.size(0) % ranks != 0) return std::nullopt;
    Operator slice;
    slice.name = maker.name + ".kept_slice";
    slice.kind = OperatorKind::slice;
    slice.inputs = {Value(new_place_.at(value.op), value.output)};
    slice.outputs = {whole};
    slice.outputs.front().shape.resize(0, whole.shape.size(0) / ranks);
    slice.group = families_.copies_of(*layout);
    slice.layer = reader.layer;
    slice.chunk = reader.chunk;
    Operator gather = slice;
    gather.name = maker.name + ".kept_slices";
    gather.kind = OperatorKind::all_gather;
    gather.outputs = {whole};
    gather.recompute = true;
    gather.inputs = {add(std::move(slice), {std::nullopt})};
    const Value all = add(std::move(gather), {layout});
    gathered_.emplace(key, all);
    return all;
  }

  [[nodiscard]] Layouts values_of(OperatorId id) const {
    return {stage_.values.begin() + first_value_[id], stage_.values.begin() + first_value_[id + 1]};
  }

  OperatorId add(Operator op, Layouts layouts) {
    operators_.push_back(std::move(op));
    std::ranges::move(layouts, std::back_inserter(values_));
    return static_cast<OperatorId>(operators_.size() - 1);
  }

  ShardedGraph& stage_;
  DeviceFamilies families_;
  std::vector<std::uint32_t> first_value_;
  std::set<std::uint32_t> layers_;
  std::map<OperatorId, OperatorId> new_place_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Value> gathered_;  // by layer and value
  std::vector<Operator> operators_;
  Layouts values_;
};

}  // namespace

void slice_kept_activations(ShardedGraph& stage) {
  if (!stage.values.empty()) KeptSlices(stage).run();
}

}  // namespace hcclsim::hccl
