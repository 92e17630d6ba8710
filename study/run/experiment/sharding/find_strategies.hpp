#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/sharding/strategy.hpp"
#include "hccl/strategies/costs/cost_graph.hpp"
#include "hccl/strategies/options.hpp"
#include "models/graph.hpp"
#include "study/spec/search_mode.hpp"

/// The search of strategies alone, by the costs of MindSpore: nothing is simulated.
namespace hcclsim::study {

struct StrategySearch {
  StrategySearchMode mode = StrategySearchMode::recursive_programming;
  hccl::SearchOptions options{};  ///< but for the devices
  /// Strategies that propagation begins at, and that dynamic programming and the exact search leave as they are; the
  /// recursive search does not look at them.
  hccl::StrategyMap given{};
};

/// What a search gives, before anything is simulated.
struct FoundStrategies {
  double cost = 0;                ///< by the search's own model
  double dynamic_cost = 0;        ///< by that of dynamic programming, by which all modes can be compared
  std::optional<double> bound{};  ///< of exact: nothing costs less
  // Of recursive programming: MindSpore's operators
  std::optional<std::uint32_t> kept{};
  std::optional<std::uint32_t> eliminated{};
  std::uint64_t candidates = 0;                                   ///< that were compared, or sums of costs
  std::vector<std::pair<std::string, std::string>> strategies{};  ///< operator and cuts, in forward order
  std::vector<std::string> notes{};
};

struct FoundMap {
  hccl::StrategyMap strategies;
  FoundStrategies found;
};

/// `network` has the samples of a micro-batch over all devices of a stage. The exact search counts what dynamic
/// programming does. Throws Error(bad_input) of kind "search" where the search has nothing to begin at or finds nothing
/// that fits, and what the searches throw.
[[nodiscard]] FoundMap find_strategies(const models::Graph& network, const StrategySearch& search, Rank devices,
                                       std::uint32_t stages);

/// Operators and their cuts as texts, in forward order.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> strategy_texts(const models::Graph& network,
                                                                              const hccl::StrategyMap& strategies);

/// The strategies that a choice of candidates means, those of operators that share a parameter made alike. `settled`:
/// operators that a user has given a strategy.
[[nodiscard]] hccl::StrategyMap strategies_of_choice(const models::Graph& network, const hccl::CostGraph& costs,
                                                     const hccl::Choice& choice, const std::vector<bool>& settled,
                                                     Rank devices);

}  // namespace hcclsim::study
