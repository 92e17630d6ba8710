#pragma once

#include <string_view>

#include "models/graph.hpp"

namespace hcclsim::models {

/// Names of operators of a reference begin so.
inline constexpr std::string_view reference_prefix = "reference.";

/// The graph with a frozen copy of itself beside it, layer by layer, that is applied to the same samples: what training
/// with preferences compares with (Rafailov et al. 2023, "Direct Preference Optimization"). The copy ends with the
/// logarithms of its probabilities, which nobody reads here: the loss stays that of the graph.
[[nodiscard]] Graph with_reference(const Graph& graph);

}  // namespace hcclsim::models
