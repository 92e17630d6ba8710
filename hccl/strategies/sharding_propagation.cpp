#include "hccl/strategies/sharding_propagation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

class Walk {
 public:
  Walk(const CostGraph& graph, const std::vector<std::optional<std::uint32_t>>& given)
      : graph_(graph), given_(given), chosen_(given) {
    into_.resize(graph.nodes.size());
    out_.resize(graph.nodes.size());
    for (std::uint32_t edge = 0; edge < graph.edges.size(); ++edge) {
      out_[graph.edges[edge].from].push_back(edge);
      into_[graph.edges[edge].to].push_back(edge);
    }
  }

  void from(std::uint32_t start) {
    std::deque<std::uint32_t> open{start};
    while (!open.empty()) {
      const std::uint32_t node = open.front();
      open.pop_front();
      for (const std::uint32_t edge : out_[node]) meet(edge, graph_.edges[edge].to, open);
      for (const std::uint32_t edge : into_[node]) meet(edge, graph_.edges[edge].from, open);
    }
  }

  [[nodiscard]] Propagated finish() && {
    for (const std::optional<std::uint32_t>& candidate : chosen_) result_.choice.push_back(candidate.value_or(0));
    return std::move(result_);
  }

 private:
  /// Communication, computation, forward communication of the neighbour itself, its number: less is better.
  using Rank = std::tuple<double, double, double, std::uint32_t>;

  void meet(std::uint32_t edge, std::uint32_t neighbour, std::deque<std::uint32_t>& open) {
    if (chosen_[neighbour].has_value()) {
      check(edge);
      return;
    }
    const CostEdge& met = graph_.edges[edge];
    const bool behind = neighbour == met.to;
    std::optional<Rank> best;
    for (std::uint32_t candidate = 0; candidate < graph_.nodes[neighbour].candidates.size(); ++candidate) {
      ++result_.candidates;
      const std::optional<SearchCost>& cost =
          behind ? graph_.cost(met, *chosen_[met.from], candidate) : graph_.cost(met, candidate, *chosen_[met.to]);
      constexpr double never = std::numeric_limits<double>::infinity();
      const SearchCost& own = graph_.nodes[neighbour].costs[candidate];
      const Rank rank{cost.has_value() ? cost->communication : never, cost.has_value() ? cost->computation : never,
                      own.forward, candidate};
      if (!best.has_value() || rank < *best) best = rank;
    }
    if (std::get<0>(*best) > 0) warn(edge, "no strategy goes without communication");
    chosen_[neighbour] = std::get<3>(*best);
    open.push_back(neighbour);
  }

  /// Both ends of an edge are settled already.
  void check(std::uint32_t edge) {
    const CostEdge& met = graph_.edges[edge];
    const std::optional<SearchCost>& cost = graph_.cost(met, *chosen_[met.from], *chosen_[met.to]);
    if (!cost.has_value() || cost->communication > 0) warn(edge, "their strategies do not meet");
  }

  /// Once per edge.
  void warn(std::uint32_t edge, std::string_view what) {
    const CostEdge& met = graph_.edges[edge];
    std::string text =
        fmt::format("between {} and {}: {}", graph_.nodes[met.from].name, graph_.nodes[met.to].name, what);
    if (std::ranges::find(result_.warnings, text) == result_.warnings.end())
      result_.warnings.push_back(std::move(text));
  }

  const CostGraph& graph_;
  const std::vector<std::optional<std::uint32_t>>& given_;
  std::vector<std::optional<std::uint32_t>> chosen_;
  std::vector<std::vector<std::uint32_t>> into_;
  std::vector<std::vector<std::uint32_t>> out_;
  Propagated result_;
};

}  // namespace

Propagated propagate(const CostGraph& graph, const std::vector<std::optional<std::uint32_t>>& given) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t node = 0; node < given.size(); ++node) {
    if (given[node].has_value()) starts.push_back(node);
  }
  if (starts.empty()) {
    bad_input("search", "propagation begins at operators with a strategy: give at least one of them one");
  }
  std::ranges::stable_sort(starts, {}, [&](std::uint32_t node) { return graph.nodes[node].name; });
  Walk walk(graph, given);
  for (const std::uint32_t start : starts) walk.from(start);
  return std::move(walk).finish();
}

PropagationResult sharding_propagation(const models::Graph& graph, const StrategyMap& given,
                                       const SearchOptions& options) {
  check(options);
  const std::vector<SearchedOperator> operators = searched_operators(graph);
  const std::vector<std::optional<DimensionParts>> fixed = given_parts(graph, given, options.devices);
  const CostGraph costs = make_cost_graph(graph, options, [&](models::OperatorId id) { return fixed[id]; });
  std::vector<std::optional<std::uint32_t>> settled(costs.nodes.size());
  std::vector<bool> is_settled(operators.size(), false);
  for (std::size_t id = 0; id < fixed.size(); ++id) {
    if (!fixed[id].has_value()) continue;
    settled[id] = 0;
    is_settled[id] = true;
  }
  Propagated spread = propagate(costs, settled);
  PropagationResult result;
  result.warnings = std::move(spread.warnings);
  result.candidates = spread.candidates;
  for (std::size_t id = 0; id < operators.size(); ++id) {
    result.strategies.parts.push_back(costs.nodes[id].candidates[spread.choice[id]]);
    const auto named = given.find(graph.operators[id].name);
    result.strategies.outputs.push_back(named == given.end() ? std::nullopt : named->second.output);
  }
  share_parameters(graph, operators, options.devices, is_settled, result.strategies.parts);
  return result;
}

}  // namespace hcclsim::hccl
