#include "hccl/search/cost_graph.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/search/candidates.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;

SearchCost redistribution_cost(const TensorLayout& from, const TensorLayout& to, DataType type, bool kept,
                               const SearchOptions& options) {
  const RedistributionCost cost =
      cost_of(redistribute(from, to, options.enable_alltoall), {.element = size_of(type)});
  const double forward = practical_bytes(cost.forward, options);
  const double all = forward + practical_bytes(cost.backward, options);
  return {.computation = cost.computation,
          .forward = forward,
          .communication = all,
          .partial_communication = all,
          .memory = kept ? cost.computation : 0};
}

bool is_elementwise(const Operator& op) {
  const std::vector<MindSporeKind> kinds = mindspore_operators(op);
  return std::all_of(kinds.begin(), kinds.end(), [](MindSporeKind kind) { return kind == MindSporeKind::elementwise; });
}

class CostGraphBuilder {
 public:
  CostGraphBuilder(const Graph& graph, const SearchOptions& options)
      : graph_(graph), options_(options), trained_(graph.needs_gradient()) {
    for (OperatorId id = 0; id < graph.operators.size(); ++id) loops_.push_back(loops_of(graph, id));
  }

  void add_operator(OperatorId id, const std::optional<Cuts>& fixed) {
    const Operator& op = graph_.operators[id];
    CostNode node{.name = op.name, .op = id, .elementwise = is_elementwise(op)};
    node.candidates = candidates(id, fixed);
    for (const Cuts& cuts : node.candidates) {
      node.costs.push_back(operator_cost(op, loops_[id], cuts, trained_[id], options_));
    }
    result_.nodes.push_back(std::move(node));
  }

  /// Edges of all inputs of an operator.
  void add_edges(OperatorId id) {
    for (std::size_t input = 0; input < graph_.operators[id].inputs.size(); ++input) add_edge(id, input);
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
  [[nodiscard]] std::vector<Cuts> candidates(OperatorId id, const std::optional<Cuts>& fixed) const {
    const Operator& op = graph_.operators[id];
    if (op.kind == models::OperatorKind::input) {
      return {{std::gcd(loops_[id].axes.front().size, options_.devices)}};
    }
    if (!fixed.has_value()) return candidate_cuts(op, loops_[id], options_);
    SearchOptions any = options_;
    any.fully_use_devices = false;
    const std::vector<Cuts> allowed = candidate_cuts(op, loops_[id], any);
    if (std::find(allowed.begin(), allowed.end(), *fixed) == allowed.end()) {
      bad_input("search", "{}: ({}) is no strategy of this operator on {} devices", op.name, fmt::join(*fixed, ","),
                options_.devices);
    }
    return {*fixed};
  }

  void add_edge(OperatorId id, std::size_t input) {
    const models::Value value = graph_.operators[id].inputs[input];
    const LoopTensor& made = loops_[value.op].outputs[value.output];
    const LoopTensor& read = loops_[id].inputs[input];
    CostEdge edge{.from = value.op, .to = id};
    const bool follows = options_.elementwise_op_strategy_follow && input == 0 && result_.nodes[id].elementwise;
    bool can_follow = false;
    for (const Cuts& from : result_.nodes[value.op].candidates) {
      const TensorLayout given = layout_of(made, from, options_.devices);
      for (const Cuts& to : result_.nodes[id].candidates) {
        edge.costs.emplace_back(redistribution_cost(given, layout_of(read, to, options_.devices),
                                                    made.tensor.dtype, trained_[value.op], options_));
        can_follow = can_follow || is_free(*edge.costs.back());
      }
    }
    if (follows && can_follow) {
      for (std::optional<SearchCost>& cost : edge.costs) {
        if (!is_free(*cost)) cost.reset();
      }
    }
    result_.edges.push_back(std::move(edge));
  }

  static bool is_free(const SearchCost& cost) { return cost.communication == 0 && cost.computation == 0; }

  [[nodiscard]] const LoopTensor& parameter_of(OperatorId id, std::uint32_t parameter) const {
    return *std::find_if(loops_[id].inputs.begin(), loops_[id].inputs.end(),
                         [&](const LoopTensor& tensor) { return tensor.parameter == parameter; });
  }

  void add_shared_parameter(std::uint32_t parameter, const std::vector<OperatorId>& users) {
    CostNode node{.name = graph_.parameters[parameter].name};
    const auto id_of_node = static_cast<std::uint32_t>(result_.nodes.size());
    // The slices by which users know it: candidates in the order of the first user.
    std::vector<TensorLayout> layouts;
    for (const Cuts& cuts : result_.nodes[users.front()].candidates) {
      const LoopTensor& tensor = parameter_of(users.front(), parameter);
      TensorLayout layout = layout_of(tensor, cuts, options_.devices);
      if (std::none_of(layouts.begin(), layouts.end(), [&](const TensorLayout& known) { return same(known, layout); })) {
        node.candidates.push_back(cuts_of(tensor, cuts));
        node.costs.emplace_back();
        layouts.push_back(std::move(layout));
      }
    }
    for (const OperatorId user : users) {
      CostEdge edge{.from = id_of_node, .to = user, .parameter = true};
      for (const TensorLayout& layout : layouts) {
        for (const Cuts& cuts : result_.nodes[user].candidates) {
          const bool fits = same(layout, layout_of(parameter_of(user, parameter), cuts, options_.devices));
          edge.costs.push_back(fits ? std::optional(SearchCost{}) : std::nullopt);
        }
      }
      result_.edges.push_back(std::move(edge));
    }
    result_.nodes.push_back(std::move(node));
  }

  /// Whether every device has the same part.
  [[nodiscard]] bool same(const TensorLayout& a, const TensorLayout& b) const {
    return redistribute(a, b, options_.enable_alltoall).empty();
  }

  const Graph& graph_;
  const SearchOptions& options_;
  std::vector<bool> trained_;
  std::vector<OperatorLoops> loops_;
  CostGraph result_;
};

}  // namespace

SearchCost cost_of(const CostGraph& graph, const Choice& choice) {
  SearchCost sum;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) sum += graph.nodes[i].costs.at(choice.at(i));
  for (const CostEdge& edge : graph.edges) {
    const std::optional<SearchCost>& cost = graph.cost(edge, choice[edge.from], choice[edge.to]);
    if (!cost.has_value()) {
      bad_input("search", "{} and {} cut the parameter or tensor between them differently", graph.nodes[edge.from].name,
                graph.nodes[edge.to].name);
    }
    sum += *cost;
  }
  return sum;
}

TensorLayout layout_of(const LoopTensor& tensor, const Cuts& cuts, Rank devices) {
  TensorLayout layout{.devices = {}, .map = {}, .shape = tensor.tensor.shape};
  layout.map.resize(tensor.axes.size());
  std::vector<std::uint32_t> place(cuts.size(), not_cut);
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    if (cuts[axis] == 1) continue;
    place[axis] = static_cast<std::uint32_t>(layout.devices.sizes.size());
    layout.devices.sizes.push_back(cuts[axis]);
  }
  const auto repeated = static_cast<std::uint32_t>(devices / devices_used(cuts));
  if (repeated > 1) layout.devices.sizes.push_back(repeated);
  const auto axes = static_cast<std::uint32_t>(layout.devices.sizes.size());
  for (std::size_t i = 0; i < tensor.axes.size(); ++i) {
    const std::uint32_t axis = tensor.axes[i];
    if (axis != not_cut && place[axis] != not_cut) layout.map[i].push_back(axes - 1 - place[axis]);
  }
  return layout;
}

CostGraph make_cost_graph(const Graph& graph, const SearchOptions& options,
                          const std::function<std::optional<Cuts>(OperatorId)>& fixed) {
  check(options);
  CostGraphBuilder builder(graph, options);
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    builder.add_operator(id, fixed ? fixed(id) : std::nullopt);
  }
  for (OperatorId id = 0; id < graph.operators.size(); ++id) builder.add_edges(id);
  builder.add_shared_parameters();
  return std::move(builder).finish();
}

}  // namespace hcclsim::hccl
