#pragma once

#include "study/compare/strategies/strategy_search.hpp"

/// Options of `hcclsim search` with the mode of a strategy search, beside those of `run`.
namespace hcclsim::cli {

class Command;

/// To be added behind those of `run`.
void add_strategy_search_options(Command& command, study::StrategySearchSpec& spec);

inline constexpr const char* searching_strategies = "Strategies of operators";  ///< group of these options

/// Throws Error(bad_input, "option") for options of the other modes: `strategies` tells whether the mode is that of a
/// strategy search.
void check_strategy_search_options(const Command& command, bool strategies, study::StrategySearchMode mode);

}  // namespace hcclsim::cli
