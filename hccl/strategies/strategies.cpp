#include "hccl/strategies/strategies.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/strategies/costs/candidates.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::OperatorId;

/// All that the rules of an operator and its dimensions allow.
std::vector<DimensionParts> all_strategies(const SearchedOperator& op, Rank devices) {
  SearchOptions options;
  options.devices = devices;
  options.fully_use_devices = false;
  return candidates_of(op, options);
}

/// The operator with one of its tensors cut as a neighbour cuts it, as far as it can be.
DimensionParts taking_over(const SearchedOperator& op, const TensorAxes& axes, const Cuts& cuts, Rank devices) {
  DimensionParts parts(op.sizes.size(), 1);
  for (std::size_t axis = 0; axis < std::min(cuts.size(), axes.dimensions.size()); ++axis) {
    const std::size_t dimension = axes.dimensions[axis];
    DimensionParts more = parts;
    more[dimension] = std::max(more[dimension], std::gcd(op.sizes[dimension], cuts[axis]));
    const std::vector<DimensionParts> allowed = all_strategies(op, devices);
    if (std::ranges::find(allowed, more) != allowed.end()) parts = std::move(more);
  }
  return parts;
}

DimensionParts batch_parallel(const SearchedOperator& op, Rank devices) {
  DimensionParts parts(op.sizes.size(), 1);
  const std::optional<std::size_t> batch = op.find("batch");
  if (batch.has_value()) parts[*batch] = std::gcd(op.sizes[*batch], devices);
  return parts;
}

/// Spreads layouts of decided operators that use `used` devices.
class Spreading {
 public:
  Spreading(const Graph& graph, const std::vector<SearchedOperator>& operators, Rank devices,
            std::vector<std::optional<DimensionParts>>& parts)
      : graph_(graph), operators_(operators), devices_(devices), parts_(parts) {
    readers_.resize(operators.size());
    for (OperatorId id = 0; id < operators.size(); ++id) {
      for (std::uint32_t input = 0; input < operators[id].inputs.size(); ++input) {
        readers_[graph.operators[id].inputs[input].op].emplace_back(id, input);
      }
    }
  }

  void spread(Rank used) {
    while (forwards(used) || backwards(used)) {
    }
  }

 private:
  bool forwards(Rank used) {
    bool changed = false;
    for (const SearchedOperator& op : operators_) {
      for (std::size_t input = 0; input < op.inputs.size() && !parts_[op.id].has_value(); ++input) {
        const models::Value value = graph_.operators[op.id].inputs[input];
        if (value.op == 0 || !decides(value.op, used)) continue;
        const TensorAxes& made = operators_[value.op].outputs[value.output].axes;
        parts_[op.id] = taking_over(op, op.inputs[input].axes, cuts_of(made, *parts_[value.op]), devices_);
        changed = true;
      }
    }
    return changed;
  }

  bool backwards(Rank used) {
    for (std::size_t i = operators_.size(); i-- > 0;) {
      const SearchedOperator& op = operators_[i];
      if (parts_[i].has_value() || op.outputs.empty()) continue;
      for (const auto& [reader, input] : readers_[i]) {
        if (!decides(reader, used)) continue;
        const Cuts cuts = cuts_of(operators_[reader].inputs[input].axes, *parts_[reader]);
        parts_[i] = taking_over(op, op.outputs.front().axes, cuts, devices_);
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool decides(OperatorId id, Rank used) const {
    return parts_[id].has_value() && devices_used(*parts_[id]) >= used;
  }

  const Graph& graph_;
  const std::vector<SearchedOperator>& operators_;
  Rank devices_;
  std::vector<std::optional<DimensionParts>>& parts_;
  std::vector<std::vector<std::pair<OperatorId, std::uint32_t>>> readers_;
};

/// A user of a parameter that others use too.
struct User {
  OperatorId id;
  const TensorAxes* axes;  ///< of the parameter
};

double sum_of_slices(const SearchedOperator& op, const DimensionParts& parts) {
  double bytes = 0;
  for (const std::vector<SearchedTensor>* tensors : {&op.inputs, &op.parameters}) {
    for (const SearchedTensor& tensor : *tensors) bytes += slice_bytes(tensor, parts);
  }
  return bytes;
}

std::uint64_t parts_of_parameter(const User& user, const DimensionParts& parts) {
  const Cuts cuts = cuts_of(*user.axes, parts);
  return std::accumulate(cuts.begin(), cuts.end(), std::uint64_t{1}, std::multiplies<>());
}

/// The strategy nearest to `now` that cuts the parameter by `layout`.
std::optional<DimensionParts> nearest(const SearchedOperator& op, const TensorAxes& parameter,
                                      const DimensionParts& now, const TensorLayout& layout, Rank devices) {
  std::optional<DimensionParts> best;
  std::pair<std::ptrdiff_t, std::uint64_t> best_rank;
  for (DimensionParts& parts : all_strategies(op, devices)) {
    if (!redistribute(layout, layout_of(parameter, parts, devices), {}).empty()) continue;
    std::ptrdiff_t equal = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) equal += parts[i] == now[i] ? 1 : 0;
    const std::pair rank{equal, devices_used(parts)};
    if (best.has_value() && rank <= best_rank) continue;
    best = std::move(parts);
    best_rank = rank;
  }
  return best;
}

/// Whether all users could be given the layout; then they have it.
bool take_layout(const std::vector<SearchedOperator>& operators, const std::vector<User>& users,
                 const TensorLayout& layout, Rank devices, const std::vector<bool>& settled,
                 std::vector<DimensionParts>& parts) {
  std::vector<DimensionParts> taken;
  for (const User& user : users) {
    if (redistribute(layout, layout_of(*user.axes, parts[user.id], devices), {}).empty()) {
      taken.push_back(parts[user.id]);
      continue;
    }
    if (settled[user.id]) return false;
    std::optional<DimensionParts> found = nearest(operators[user.id], *user.axes, parts[user.id], layout, devices);
    if (!found.has_value()) return false;
    taken.push_back(std::move(*found));
  }
  for (std::size_t i = 0; i < users.size(); ++i) parts[users[i].id] = std::move(taken[i]);
  return true;
}

}  // namespace

void follow_neighbours(const Graph& graph, const std::vector<SearchedOperator>& operators, Rank devices,
                       std::vector<std::optional<DimensionParts>>& parts) {
  Spreading spreading(graph, operators, devices, parts);
  for (Rank used = devices; used > 1; used /= 2) spreading.spread(used);
  for (const SearchedOperator& op : operators) {
    if (!parts[op.id].has_value()) parts[op.id] = batch_parallel(op, devices);
  }
}

void share_parameters(const Graph& graph, const std::vector<SearchedOperator>& operators, Rank devices,
                      const std::vector<bool>& settled, std::vector<DimensionParts>& parts) {
  std::map<std::uint32_t, std::vector<User>> users;
  for (const SearchedOperator& op : operators) {
    for (std::size_t i = 0; i < op.parameters.size(); ++i) {
      users[graph.operators[op.id].parameters[i]].push_back({op.id, &op.parameters[i].axes});
    }
  }
  for (const auto& of_parameter : users) {
    const std::vector<User>& sharing = of_parameter.second;
    if (sharing.size() < 2) continue;
    std::vector<User> by_rank = sharing;
    std::ranges::stable_sort(by_rank, std::greater<>(), [&](const User& user) {
      return std::tuple(settled[user.id], parts_of_parameter(user, parts[user.id]),
                        -sum_of_slices(operators[user.id], parts[user.id]));
    });
    const bool agreed = std::ranges::any_of(by_rank, [&](const User& user) {
      return take_layout(operators, sharing, layout_of(*user.axes, parts[user.id], devices), devices, settled, parts);
    });
    const TensorAxes& axes = *sharing.front().axes;
    const DimensionParts whole(operators[sharing.front().id].sizes.size(), 1);
    if (!agreed && !take_layout(operators, sharing, layout_of(axes, whole, devices), devices, settled, parts)) {
      bad_input("search", "{}: the strategies given to its operators cut it differently",
                graph.parameters[of_parameter.first].name);
    }
  }
}

std::vector<std::optional<DimensionParts>> given_parts(const Graph& graph, const StrategyMap& given, Rank devices) {
  const WholeGraph whole(graph);
  std::vector<std::optional<DimensionParts>> parts(graph.operators.size());
  for (const auto& [name, strategy] : given) {
    const auto found = std::ranges::find(graph.operators, name, &models::Operator::name);
    if (found == graph.operators.end() || found->kind == models::OperatorKind::input) {
      bad_input("search", "'{}': {} has no operator of this name that can have a strategy", name, graph.title);
    }
    const auto id = static_cast<OperatorId>(found - graph.operators.begin());
    parts[id] = parts_of(shard_operator(whole, id, &strategy, devices));
  }
  return parts;
}

StrategyMap strategy_map(const Graph& graph, const NetworkStrategies& strategies) {
  StrategyMap map;
  for (const SearchedOperator& op : searched_operators(graph)) {
    if (op.kind == models::OperatorKind::input) continue;
    OperatorStrategy strategy = strategy_of(op, strategies.parts[op.id]);
    if (!strategies.outputs.empty()) strategy.output = strategies.outputs[op.id];
    map[graph.operators[op.id].name] = std::move(strategy);
  }
  return map;
}

}  // namespace hcclsim::hccl
