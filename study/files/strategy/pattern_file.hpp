#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/graph.hpp"
#include "study/files/strategy/operator_strategies.hpp"

/// The TOML form of a file of strategies: patterns of names of operators, and regions (shard_regions.hpp).
namespace hcclsim::study {

/// For the operators of `network`, cut over so many devices. What has no effect is added to `notes`. Throws
/// Error(bad_input) of the kinds "config" for a file that is no TOML, "strategy" for what is wrong in it or names no
/// operator, and those that MindSpore raises: "type-error" for what is no list, or no list of whole numbers, where
/// there has to be one, "value-error" for an out_strategy without a strategy and for Layouts beside numbers
/// (layout_text.hpp, named_layouts.hpp).
[[nodiscard]] OperatorStrategies read_pattern_file(const std::string& path, const models::Graph& network, Rank devices,
                                                   std::vector<std::string>& notes);

/// Whether a file of strategies has regions; no other form than TOML has any. Throws Error(bad_input, "config") for a
/// *.toml that is no TOML.
[[nodiscard]] bool has_regions(const std::string& path);

}  // namespace hcclsim::study
