#include "hccl/parallel/sharding/region.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/signature.hpp"

namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;
using models::Value;

class Propagation {
 public:
  Propagation(const models::Graph& whole, const ShardRegion& region, Rank devices)
      : whole_(whole),
        graph_(whole),
        region_(region),
        devices_(devices),
        first_value_(whole.first_values()),
        planned_(region.parameters) {
    for (const auto& [name, cuts] : planned_) check_parameter(name, cuts);
    const std::vector<Value> inputs = inputs_of_region(whole, region.operators);
    if (inputs.size() != region.inputs.size()) {
      std::vector<std::string> names;
      for (const Value input : inputs) names.push_back(whole.operators[input.op].name);
      bad_input("value-error", "in_strategy has {} elements, the region reads {}: {}", region.inputs.size(),
                inputs.size(), fmt::join(names, ", "));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) known_[number_of(inputs[i])] = cuts_of_input(i, inputs[i]);
  }

  StrategyMap run() {
    StrategyMap strategies;
    for (const OperatorId id : region_.operators) {
      if (graph_.operators[id].kind != OperatorKind::input) strategies[graph_.operators[id].name] = strategy_of(id);
    }
    return strategies;
  }

 private:
  /// Parts of the dimensions of an operator; 0: nothing says anything.
  using Parts = std::vector<std::uint32_t>;

  [[nodiscard]] std::uint32_t number_of(Value value) const { return first_value_[value.op] + value.output; }

  void check_parameter(const std::string& name, const Cuts& cuts) const {
    const auto found = std::ranges::find(graph_.parameters, name, &models::Parameter::name);
    if (found == graph_.parameters.end()) internal_error("there is no parameter {}", name);
    bool fits = cuts.size() == found->shape.size();
    for (std::size_t axis = 0; fits && axis < cuts.size(); ++axis) {
      fits = cuts[axis] > 0 && found->shape[axis] % cuts[axis] == 0;
    }
    if (fits) return;
    bad_input("value-error", "parameter_plan: {} of shape ({}) cannot be cut as ({}); there is a divisor for each axis",
              name, fmt::join(found->shape, ","), fmt::join(cuts, ","));
  }

  /// As signatures see the tensor: rows of sequences as sequences and positions.
  [[nodiscard]] Cuts cuts_of_input(std::size_t number, Value value) const {
    const Shape view = whole_.view(value);
    const std::string& name = graph_.operators[value.op].name;
    if (!region_.inputs[number].has_value()) {
      Cuts samples(view.rank(), 1);
      samples.front() = std::gcd(view.size(0), static_cast<std::uint32_t>(devices_));
      return samples;
    }
    Cuts cuts = *region_.inputs[number];
    const bool of_rows = view.rank() == 3 && cuts.size() == 2;
    if (of_rows) cuts.insert(cuts.begin() + 1, 1);
    bool fits = cuts.size() == view.rank();
    for (std::size_t axis = 0; fits && axis < cuts.size(); ++axis) {
      fits = cuts[axis] > 0 && view.size(axis) % cuts[axis] == 0;
    }
    const std::uint64_t parts = std::accumulate(cuts.begin(), cuts.end(), std::uint64_t{1}, std::multiplies<>());
    if (fits && devices_ % parts != 0) {
      bad_input("value-error", "in_strategy: {} cut as ({}) has {} parts for {} devices; their number must divide it",
                name, fmt::join(*region_.inputs[number], ","), parts, devices_);
    }
    if (fits) return cuts;
    bad_input("value-error", "in_strategy: {} of shape {} cannot be cut as ({}); there is a divisor for each axis",
              name, models::to_string(view), fmt::join(*region_.inputs[number], ","));
  }

  [[nodiscard]] std::uint64_t used(const Parts& parts) const {
    std::uint64_t product = 1;
    for (const std::uint32_t part : parts) product *= std::max(part, 1U);
    return product;
  }

  /// Whether a dimension can have so many parts beside what the others have.
  [[nodiscard]] bool fits(const Signature& signature, const Parts& parts, std::size_t dimension,
                          std::uint32_t cut) const {
    if (cut == 1) return true;
    const Dimension& one = signature.dimensions[dimension];
    if (!one.whole.empty() || (one.things != 0 && one.things % cut != 0)) return false;
    for (const std::vector<TensorAxes>* tensors : {&signature.inputs, &signature.parameters, &signature.outputs}) {
      for (const TensorAxes& tensor : *tensors) {
        for (std::size_t axis = 0; axis < tensor.dimensions.size(); ++axis) {
          if (tensor.dimensions[axis] == dimension && tensor.shape.size(axis) % cut != 0) return false;
        }
      }
    }
    return devices_ % (used(parts) * cut) == 0;
  }

  /// What a tensor comes with, as far as the operator can take it.
  void take(const Signature& signature, const TensorAxes& tensor, const Cuts& cuts, Parts& parts) const {
    if (cuts.size() != tensor.dimensions.size()) return;
    for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
      const std::size_t dimension = tensor.dimensions[axis];
      if (parts[dimension] == 0 && fits(signature, parts, dimension, cuts[axis])) parts[dimension] = cuts[axis];
    }
  }

  /// Axes of a parameter as a user sees them; behind them blocks are one more, which is whole.
  [[nodiscard]] static Cuts seen_by(const Signature& signature, const TensorAxes& tensor, const Cuts& cuts) {
    Cuts own;
    std::size_t next = 0;
    for (const std::size_t dimension : tensor.dimensions) {
      const bool blocks = signature.dimensions[dimension].name.starts_with("blocks");
      own.push_back(blocks && tensor.dimensions.size() > cuts.size() ? 1 : cuts[next++]);
    }
    return own;
  }

  void take_plan(OperatorId id, const Signature& signature, Parts& parts) const {
    const models::Operator& op = graph_.operators[id];
    for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
      const std::string& name = graph_.parameters[op.parameters[i]].name;
      const auto plan = planned_.find(name);
      if (plan == planned_.end()) continue;
      const TensorAxes& tensor = signature.parameters[i];
      const Cuts cuts = seen_by(signature, tensor, plan->second);
      for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
        std::uint32_t& known = parts[tensor.dimensions[axis]];
        const bool free = known == 0 && fits(signature, parts, tensor.dimensions[axis], cuts[axis]);
        if (!free && known != cuts[axis]) {
          bad_input("value-error", "parameter_plan: {} cannot be cut as ({}) by {} over {} devices", name,
                    fmt::join(plan->second, ","), op.name, devices_);
        }
        known = cuts[axis];
      }
    }
  }

  OperatorStrategy strategy_of(OperatorId id) {
    const models::Operator& op = graph_.operators[id];
    const Signature signature = whole_.signature(id);
    Parts parts(signature.dimensions.size(), 0);
    take_plan(id, signature, parts);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const auto known = known_.find(number_of(op.inputs[i]));
      if (known != known_.end()) take(signature, signature.inputs[i], known->second, parts);
    }
    std::map<std::string_view, std::uint32_t> cuts;
    for (std::size_t d = 0; d < parts.size(); ++d) cuts[signature.dimensions[d].name] = std::max(parts[d], 1U);
    for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
      const Value output(id, static_cast<std::uint32_t>(i));
      known_[number_of(output)] = cuts_along(signature.outputs[i], parts);
    }
    note_parameters(op, signature, parts);
    return hccl::strategy_of(signature, cuts);
  }

  /// Another operator of the region with the same parameter cuts it alike.
  void note_parameters(const models::Operator& op, const Signature& signature, const Parts& parts) {
    for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
      const models::Parameter& parameter = graph_.parameters[op.parameters[i]];
      const Cuts cuts = cuts_along(signature.parameters[i], parts);
      if (cuts.size() == parameter.shape.size()) planned_.try_emplace(parameter.name, cuts);
    }
  }

  [[nodiscard]] static Cuts cuts_along(const TensorAxes& tensor, const Parts& parts) {
    Cuts cuts;
    for (const std::size_t dimension : tensor.dimensions) cuts.push_back(std::max(parts[dimension], 1U));
    return cuts;
  }

  WholeGraph whole_;
  const models::Graph& graph_;
  const ShardRegion& region_;
  Rank devices_;
  std::vector<std::uint32_t> first_value_;
  std::map<std::string, Cuts> planned_;
  std::map<std::uint32_t, Cuts> known_;  // of values
};

}  // namespace

std::vector<Value> inputs_of_region(const models::Graph& whole, const std::set<OperatorId>& operators) {
  std::vector<Value> inputs;
  for (const OperatorId id : operators) {
    for (const Value input : whole.operators[id].inputs) {
      const bool outside = !operators.contains(input.op);
      if (outside && std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
    }
  }
  return inputs;
}

StrategyMap region_strategies(const models::Graph& whole, const ShardRegion& region, Rank devices) {
  return Propagation(whole, region, devices).run();
}

}  // namespace hcclsim::hccl
