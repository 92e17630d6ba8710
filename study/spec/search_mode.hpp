#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// Who finds the strategies of operators.
namespace hcclsim::study {

enum class StrategySearchMode : std::uint8_t {
  recursive_programming,  ///< MindSpore's search_mode, like the next two
  sharding_propagation,
  dynamic_programming,
  exact,  ///< their judge
};

[[nodiscard]] std::string_view name_of(StrategySearchMode mode);
/// None if no mode has this name.
[[nodiscard]] std::optional<StrategySearchMode> strategy_search_mode(std::string_view name);

}  // namespace hcclsim::study
