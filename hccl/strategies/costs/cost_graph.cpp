#include "hccl/strategies/costs/cost_graph.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/strategies/costs/candidates.hpp"
#include "hccl/strategies/mindspore_kind.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;

using FixedParts = std::function<std::optional<DimensionParts>(OperatorId)>;

SearchCost redistribution_cost(const TensorLayout& from, const TensorLayout& to, DataType type, bool kept,
                               const SearchOptions& options, const RedistributionCostOf& another) {
  const std::vector<RedistributionStep> steps = redistribute(from, to, {.all_to_all = options.enable_alltoall});
  const RedistributionCost cost = cost_of(steps, {.element = size_of(type)});
  if (another) return another(steps, type, kept, kept ? cost.computation : 0);
  const double forward = practical_bytes(cost.forward, options);
  const double all = forward + practical_bytes(cost.backward, options);
  return {.computation = cost.computation,
          .forward = forward,
          .communication = all,
          .partial_communication = all,
          .memory = kept ? cost.computation : 0};
}

bool is_elementwise(const Operator& op) {
  return std::ranges::all_of(mindspore_operators(op),
                             [](MindSporeKind kind) { return kind == MindSporeKind::elementwise; });
}

bool is_free(const SearchCost& cost) { return cost.communication == 0 && cost.computation == 0; }

class CostGraphBuilder {
 public:
  CostGraphBuilder(const Graph& graph, const SearchOptions& options, const RedistributionCostOf& redistribution)
      : graph_(graph),
        options_(options),
        redistribution_(redistribution),
        trained_(graph.needs_gradient()),
        operators_(searched_operators(graph)) {}

  void add_operators(const FixedParts& fixed) {
    for (const SearchedOperator& op : operators_) {
      CostNode node{.name = graph_.operators[op.id].name};
      node.candidates = candidates(op, fixed ? fixed(op.id) : std::nullopt);
      for (const DimensionParts& parts : node.candidates) {
        node.costs.push_back(operator_cost(op, parts, trained_[op.id], options_));
      }
      result_.nodes.push_back(std::move(node));
    }
  }

  void add_edges() {
    for (const SearchedOperator& op : operators_) {
      for (std::size_t input = 0; input < op.inputs.size(); ++input) add_edge(op, input);
    }
  }

  void add_shared_parameters() {
    std::map<std::uint32_t, std::vector<OperatorId>> users;
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      for (const std::uint32_t parameter : graph_.operators[id].parameters) users[parameter].push_back(id);
    }
    for (const auto& [parameter, ids] : users) {
      if (ids.size() > 1) add_shared_parameter(parameter, ids);
    }
  }

  [[nodiscard]] CostGraph finish() && { return std::move(result_); }

 private:
  [[nodiscard]] std::vector<DimensionParts> candidates(const SearchedOperator& op,
                                                       const std::optional<DimensionParts>& fixed) const {
    if (op.kind == models::OperatorKind::input) {
      DimensionParts parts(op.sizes.size(), 1);
      parts.front() = std::gcd(op.sizes.front(), options_.devices);
      return {parts};
    }
    if (!fixed.has_value()) {
      std::vector<DimensionParts> all = candidates_of(op, options_);
      if (!all.empty()) return all;
      bad_input("search",
                "{}: no strategy has slices of matrix products that are multiples of {}; give a smaller multiple, or "
                "search without one",
                graph_.operators[op.id].name, options_.tensor_slice_align_size);
    }
    SearchOptions any = options_;
    any.fully_use_devices = any.tensor_slice_align_enable = false;
    const std::vector<DimensionParts> allowed = candidates_of(op, any);
    if (std::ranges::find(allowed, *fixed) == allowed.end()) {
      bad_input("search", "{}: {} is no strategy of this operator on {} devices", graph_.operators[op.id].name,
                to_string(strategy_of(op, *fixed)), options_.devices);
    }
    return {*fixed};
  }

  void add_edge(const SearchedOperator& op, std::size_t input) {
    const models::Value value = graph_.operators[op.id].inputs[input];
    const SearchedTensor& made = operators_[value.op].outputs[value.output];
    CostEdge edge{.from = value.op, .to = op.id};
    edge.costs = redistribution_costs(made, value.op, op.inputs[input], op.id);
    const bool follows =
        options_.elementwise_op_strategy_follow && input == 0 && is_elementwise(graph_.operators[op.id]);
    const bool can_follow = std::ranges::any_of(edge.costs, [](const auto& cost) { return is_free(*cost); });
    if (follows && can_follow) {
      for (std::optional<SearchCost>& cost : edge.costs) {
        if (!is_free(*cost)) cost.reset();
      }
    }
    result_.edges.push_back(std::move(edge));
  }

  /// Of all pairs of candidates. Layers of a network have many edges alike.
  [[nodiscard]] const std::vector<std::optional<SearchCost>>& redistribution_costs(const SearchedTensor& made,
                                                                                   OperatorId maker,
                                                                                   const SearchedTensor& read,
                                                                                   OperatorId reader) {
    const std::vector<DimensionParts>& from = result_.nodes[maker].candidates;
    const std::vector<DimensionParts>& to = result_.nodes[reader].candidates;
    EdgeKey key{{made.axes.shape.sizes(), read.axes.shape.sizes()},
                {made.axes.dimensions, read.axes.dimensions},
                {from, to},
                {made.type, trained_[maker]}};
    const auto [known, is_new] = known_costs_.try_emplace(std::move(key));
    if (!is_new) return known->second;
    for (const DimensionParts& parts : from) {
      const TensorLayout given = layout_of(made.axes, parts, options_.devices);
      for (const DimensionParts& wanted : to) {
        known->second.emplace_back(redistribution_cost(given, layout_of(read.axes, wanted, options_.devices), made.type,
                                                       trained_[maker], options_, redistribution_));
      }
    }
    return known->second;
  }

  /// How an operator cuts one of its parameters.
  [[nodiscard]] TensorLayout parameter_layout(OperatorId id, std::uint32_t parameter,
                                              const DimensionParts& parts) const {
    return layout_of(parameter_axes(id, parameter), parts, options_.devices);
  }

  [[nodiscard]] const TensorAxes& parameter_axes(OperatorId id, std::uint32_t parameter) const {
    const std::vector<std::uint32_t>& all = graph_.operators[id].parameters;
    return operators_[id].parameters[static_cast<std::size_t>(std::ranges::find(all, parameter) - all.begin())].axes;
  }

  void add_shared_parameter(std::uint32_t parameter, const std::vector<OperatorId>& users) {
    CostNode node{.name = graph_.parameters[parameter].name};
    const auto number = static_cast<std::uint32_t>(result_.nodes.size());
    std::vector<TensorLayout> layouts;  // each way in which the first user cuts it, once
    for (const DimensionParts& parts : result_.nodes[users.front()].candidates) {
      TensorLayout layout = parameter_layout(users.front(), parameter, parts);
      if (std::ranges::any_of(layouts, [&](const TensorLayout& known) { return same(known, layout); })) continue;
      node.candidates.push_back(cuts_of(parameter_axes(users.front(), parameter), parts));
      node.costs.emplace_back();
      layouts.push_back(std::move(layout));
    }
    for (const OperatorId user : users) {
      CostEdge edge{.from = number, .to = user, .parameter = true};
      for (const TensorLayout& layout : layouts) {
        for (const DimensionParts& parts : result_.nodes[user].candidates) {
          const bool fits = same(layout, parameter_layout(user, parameter, parts));
          edge.costs.push_back(fits ? std::optional(SearchCost{}) : std::nullopt);
        }
      }
      result_.edges.push_back(std::move(edge));
    }
    result_.nodes.push_back(std::move(node));
  }

  /// Whether every device has the same part.
  [[nodiscard]] bool same(const TensorLayout& a, const TensorLayout& b) const { return redistribute(a, b, {}).empty(); }

  /// All that costs of an edge depend on: of both ends, sizes, dimensions and candidates; the type; whether it is kept.
  using EdgeKey =
      std::tuple<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>,
                 std::pair<std::vector<std::size_t>, std::vector<std::size_t>>,
                 std::pair<std::vector<DimensionParts>, std::vector<DimensionParts>>, std::pair<DataType, bool>>;

  const Graph& graph_;
  const SearchOptions& options_;
  const RedistributionCostOf& redistribution_;  // empty: MindSpore's
  std::vector<bool> trained_;
  std::vector<SearchedOperator> operators_;
  std::map<EdgeKey, std::vector<std::optional<SearchCost>>> known_costs_;
  CostGraph result_;
};

}  // namespace

SearchCost cost_of(const CostGraph& graph, const Choice& choice) {
  SearchCost sum;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) sum += graph.nodes[i].costs.at(choice.at(i));
  for (const CostEdge& edge : graph.edges) {
    const std::optional<SearchCost>& cost = graph.cost(edge, choice[edge.from], choice[edge.to]);
    if (!cost.has_value()) {
      bad_input("search", "{} and {} cut the tensor between them differently", graph.nodes[edge.from].name,
                graph.nodes[edge.to].name);
    }
    sum += *cost;
  }
  return sum;
}

CostGraph make_cost_graph(const Graph& graph, const SearchOptions& options, const FixedParts& fixed,
                          const RedistributionCostOf& redistribution) {
  check(options);
  CostGraphBuilder builder(graph, options, redistribution);
  builder.add_operators(fixed);
  builder.add_edges();
  builder.add_shared_parameters();
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
