#pragma once

#include "models/graph.hpp"
#include "study/compare/plans/plan_space.hpp"
#include "study/spec/run_spec.hpp"

namespace hcclsim::study {

/// What a search needs to know of a network to tell which plans are possible.
[[nodiscard]] PlannedNetwork planned_network(const models::Graph& graph);

/// Loads the platform in a child. Throws Error(bad_input) for one that cannot be loaded or has fewer NPUs than asked
/// for.
[[nodiscard]] PlannedNpus planned_npus(const RunSpec& spec);

}  // namespace hcclsim::study
