#pragma once

#include <string>

#include "study/compare/strategies/strategy_search.hpp"

namespace hcclsim::cli {

/// Strategies that a search has found: operators that are cut alike in one row, costs, and simulated steps. `run`: the
/// command that gives their step; empty: they were not saved.
[[nodiscard]] std::string strategy_search_text(const study::StrategySearchResult& result, const std::string& run);

/// `mode`, `cost`, `step_time_s` (null: not simulated), `strategies` of every operator, `compared` steps.
[[nodiscard]] std::string strategy_search_json(const study::StrategySearchResult& result, const std::string& run);

}  // namespace hcclsim::cli
