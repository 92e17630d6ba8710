#include "study/run/experiment/sharding/find_strategies.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/strategies/costs/cost_graph.hpp"
#include "hccl/strategies/dynamic/dynamic_programming.hpp"
#include "hccl/strategies/exact.hpp"
#include "hccl/strategies/recursive/recursive_programming.hpp"
#include "hccl/strategies/sharding_propagation.hpp"

namespace hcclsim::study {
namespace {

using hccl::NetworkStrategies;

constexpr std::array<std::pair<StrategySearchMode, std::string_view>, 4> mode_names{
    {{StrategySearchMode::recursive_programming, "recursive_programming"},
     {StrategySearchMode::sharding_propagation, "sharding_propagation"},
     {StrategySearchMode::dynamic_programming, "dynamic_programming"},
     {StrategySearchMode::exact, "exact"}}};

NetworkStrategies network_strategies(const models::Graph& network, const hccl::CostGraph& costs,
                                     const hccl::Choice& choice, const std::vector<bool>& settled, Rank devices) {
  NetworkStrategies strategies;
  for (std::size_t id = 0; id < network.operators.size(); ++id) {
    strategies.parts.push_back(costs.nodes[id].candidates[choice[id]]);
  }
  hccl::share_parameters(network, hccl::searched_operators(network), devices, settled, strategies.parts);
  return strategies;
}

class StrategyFinder {
 public:
  StrategyFinder(const models::Graph& network, const StrategySearch& search, Rank devices, std::uint32_t stages)
      : network_(network), search_(search), options_(search.options), stages_(stages) {
    options_.devices = devices;
    hccl::check(options_);
  }

  FoundMap find() {
    const NetworkStrategies strategies = found();
    found_.dynamic_cost = dynamic_cost(strategies);
    if (search_.mode == StrategySearchMode::sharding_propagation) found_.cost = found_.dynamic_cost;
    FoundMap result{hccl::strategy_map(network_, strategies), std::move(found_)};
    result.found.strategies = strategy_texts(network_, result.strategies);
    return result;
  }

 private:
  NetworkStrategies found() {
    switch (search_.mode) {
      case StrategySearchMode::recursive_programming:
        return recursive();
      case StrategySearchMode::sharding_propagation:
        return propagated();
      case StrategySearchMode::dynamic_programming:
        return dynamic();
      case StrategySearchMode::exact:
        return exact();
    }
    internal_error("unknown search {}", static_cast<int>(search_.mode));
  }

  NetworkStrategies recursive() {
    hccl::RecursiveProgrammingResult result =
        hccl::recursive_programming(network_, {.devices = options_.devices * stages_,
                                               .stages = stages_,
                                               .matmul_coefficient = options_.rp_matmul_mem_coef,
                                               .device_memory = options_.device_memory});
    found_.cost = result.cuts.cost;
    found_.candidates = result.cuts.candidates;
    found_.kept = static_cast<std::uint32_t>(result.cuts.graph.nodes.size());
    found_.eliminated = result.cuts.graph.eliminated;
    found_.notes = std::move(result.cuts.warnings);
    return std::move(result.strategies);
  }

  NetworkStrategies propagated() {
    hccl::PropagationResult result = hccl::sharding_propagation(network_, search_.given, options_);
    found_.candidates = result.candidates;
    found_.notes = std::move(result.warnings);
    return std::move(result.strategies);
  }

  /// What dynamic programming and the exact search choose from.
  hccl::CostGraph all_costs() {
    fixed_ = hccl::given_parts(network_, search_.given, options_.devices);
    return hccl::make_cost_graph(network_, options_, [&](models::OperatorId id) { return fixed_[id]; });
  }

  NetworkStrategies dynamic() {
    const hccl::CostGraph costs = all_costs();
    const hccl::DynamicProgrammingResult result = hccl::dynamic_programming(costs, options_);
    found_.cost = objective(result.listed, options_);
    found_.candidates = result.folded.sums;
    return chosen(costs, result.choice);
  }

  NetworkStrategies exact() {
    const hccl::CostGraph costs = all_costs();
    const auto count = [&](const hccl::SearchCost& cost) { return objective(cost, options_); };
    const hccl::ExactResult result =
        hccl::exact_search(costs, count, {.memory = static_cast<double>(options_.device_memory)});
    found_.cost = result.cost;
    found_.bound = result.bound;
    found_.candidates = result.examined;
    return chosen(costs, result.choice);
  }

  [[nodiscard]] NetworkStrategies chosen(const hccl::CostGraph& costs, const hccl::Choice& choice) const {
    std::vector<bool> settled;
    for (const std::optional<hccl::DimensionParts>& parts : fixed_) settled.push_back(parts.has_value());
    NetworkStrategies strategies = network_strategies(network_, costs, choice, settled, options_.devices);
    for (const models::Operator& op : network_.operators) {
      const auto given = search_.given.find(op.name);
      strategies.outputs.push_back(given == search_.given.end() ? std::nullopt : given->second.output);
    }
    return strategies;
  }

  [[nodiscard]] double dynamic_cost(const NetworkStrategies& strategies) const {
    const hccl::CostGraph costs = hccl::make_cost_graph(
        network_, options_, [&](models::OperatorId id) { return std::optional(strategies.parts[id]); });
    return objective(cost_of(costs, hccl::Choice(costs.nodes.size(), 0)), options_);
  }

  const models::Graph& network_;
  const StrategySearch& search_;
  hccl::SearchOptions options_;
  std::uint32_t stages_;
  std::vector<std::optional<hccl::DimensionParts>> fixed_;  ///< of operators whose strategy is given
  FoundStrategies found_;
};

}  // namespace

std::string_view name_of(StrategySearchMode mode) {
  return std::ranges::find(mode_names, mode, &std::pair<StrategySearchMode, std::string_view>::first)->second;
}

std::optional<StrategySearchMode> strategy_search_mode(std::string_view name) {
  const auto* const found =
      std::ranges::find(mode_names, name, &std::pair<StrategySearchMode, std::string_view>::second);
  if (found == mode_names.end()) return std::nullopt;
  return found->first;
}

std::vector<std::pair<std::string, std::string>> strategy_texts(const models::Graph& network,
                                                                const hccl::StrategyMap& strategies) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const models::Operator& op : network.operators) {
    const auto strategy = strategies.find(op.name);
    if (strategy != strategies.end()) texts.emplace_back(op.name, hccl::to_string(strategy->second));
  }
  return texts;
}

hccl::StrategyMap strategies_of_choice(const models::Graph& network, const hccl::CostGraph& costs,
                                       const hccl::Choice& choice, const std::vector<bool>& settled, Rank devices) {
  return hccl::strategy_map(network, network_strategies(network, costs, choice, settled, devices));
}

FoundMap find_strategies(const models::Graph& network, const StrategySearch& search, Rank devices,
                         std::uint32_t stages) {
  return StrategyFinder(network, search, devices, stages).find();
}

}  // namespace hcclsim::study
