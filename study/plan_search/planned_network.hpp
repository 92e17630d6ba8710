#pragma once

#include "models/graph.hpp"
#include "study/plan_search/plan_space.hpp"

namespace hcclsim::study {

/// What a search needs to know of a network to tell which plans are possible.
[[nodiscard]] PlannedNetwork planned_network(const models::Graph& graph);

}  // namespace hcclsim::study
