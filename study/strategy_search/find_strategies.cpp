#include "study/strategy_search/find_strategies.hpp"

#include <utility>

#include "base/error.hpp"
#include "hccl/search/costs/cost_graph.hpp"
#include "hccl/search/dynamic/dynamic_programming.hpp"
#include "hccl/search/exact.hpp"
#include "hccl/search/recursive/recursive_programming.hpp"
#include "hccl/search/sharding_propagation.hpp"
#include "study/strategy/operator_strategies.hpp"
#include "study/strategy_search/strategy_seconds.hpp"

namespace hcclsim::study {
namespace {

using hccl::NetworkStrategies;

class StrategyFinder {
 public:
  StrategyFinder(const models::Graph& network, const StrategySearchSpec& spec, Rank devices, std::uint32_t stages,
                 Experiment* on)
      : network_(network), spec_(spec), options_(spec.options), stages_(stages), on_(on) {
    options_.devices = devices;
    hccl::check(options_);
  }

  FoundMap find() {
    NetworkStrategies strategies;
    switch (spec_.mode) {
      case StrategySearchMode::recursive_programming:
        strategies = recursive();
        break;
      case StrategySearchMode::sharding_propagation:
        strategies = propagated();
        break;
      case StrategySearchMode::dynamic_programming:
        strategies = dynamic();
        break;
      case StrategySearchMode::exact:
        strategies = exact();
        break;
    }
    found_.dynamic_cost = dynamic_cost(strategies);
    if (spec_.mode == StrategySearchMode::sharding_propagation) found_.cost = found_.dynamic_cost;
    FoundMap result{hccl::strategy_map(network_, strategies), std::move(found_)};
    for (const models::Operator& op : network_.operators) {
      const auto strategy = result.strategies.find(op.name);
      if (strategy == result.strategies.end()) continue;
      result.found.strategies.emplace_back(op.name, hccl::to_string(strategy->second));
    }
    return result;
  }

 private:
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

  /// Of the file that is given.
  hccl::StrategyMap given() {
    if (spec_.given.empty()) return {};
    return read_operator_strategies(spec_.given, network_, options_.devices, found_.notes).strategies;
  }

  NetworkStrategies propagated() {
    hccl::PropagationResult result = hccl::sharding_propagation(network_, given(), options_);
    found_.candidates = result.candidates;
    found_.notes.insert(found_.notes.end(), result.warnings.begin(), result.warnings.end());
    return std::move(result.strategies);
  }

  /// What dynamic programming and the exact search choose from.
  hccl::CostGraph all_costs() {
    fixed_ = hccl::given_parts(network_, given(), options_.devices);
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
    if (on_ == nullptr)
      return exact(all_costs(), [&](const hccl::SearchCost& cost) { return objective(cost, options_); });
    fixed_ = hccl::given_parts(network_, given(), options_.devices);
    found_.in_seconds = true;
    return exact(costs_in_seconds(
                     network_, options_, [&](models::OperatorId id) { return fixed_[id]; }, spec_.run, *on_),
                 [](const hccl::SearchCost& cost) { return cost.computation; });
  }

  NetworkStrategies exact(const hccl::CostGraph& costs, const hccl::ScalarCost& count) {
    const hccl::ExactResult result =
        hccl::exact_search(costs, count, {.memory = static_cast<double>(options_.device_memory)});
    found_.cost = result.cost;
    found_.bound = result.bound;
    found_.candidates = result.examined;
    return chosen(costs, result.choice);
  }

  [[nodiscard]] NetworkStrategies chosen(const hccl::CostGraph& costs, const hccl::Choice& choice) const {
    NetworkStrategies strategies;
    std::vector<bool> settled;
    for (const std::optional<hccl::DimensionParts>& parts : fixed_) settled.push_back(parts.has_value());
    for (std::size_t id = 0; id < network_.operators.size(); ++id) {
      strategies.parts.push_back(costs.nodes[id].candidates[choice[id]]);
    }
    hccl::share_parameters(network_, hccl::searched_operators(network_), options_.devices, settled, strategies.parts);
    return strategies;
  }

  [[nodiscard]] double dynamic_cost(const NetworkStrategies& strategies) const {
    const hccl::CostGraph costs = hccl::make_cost_graph(
        network_, options_, [&](models::OperatorId id) { return std::optional(strategies.parts[id]); });
    return objective(cost_of(costs, hccl::Choice(costs.nodes.size(), 0)), options_);
  }

  const models::Graph& network_;
  const StrategySearchSpec& spec_;
  hccl::SearchOptions options_;
  std::uint32_t stages_;
  Experiment* on_;                                          ///< null: costs are not seconds
  std::vector<std::optional<hccl::DimensionParts>> fixed_;  ///< of operators whose strategy is given
  FoundStrategies found_;
};

}  // namespace

FoundMap find_strategies(const models::Graph& network, const StrategySearchSpec& spec, Rank devices,
                         std::uint32_t stages, Experiment* on) {
  return StrategyFinder(network, spec, devices, stages, on).find();
}

}  // namespace hcclsim::study
