#pragma once

#include "sim/platform/names.hpp"

namespace hcclsim::sim {

/// Checks every route of a platform file: that its ends and links exist and stand where the route can use them, that
/// none is given twice, that its zone's routing takes it, and that every two NPUs are joined. The last is as far as the
/// zone itself tells: of an inner zone only that a zoneRoute leads to it, of Floyd and Dijkstra zones that the graph
/// holds together in both directions.
void check_routes(const PlatformNames& names, PlatformProblems& problems);

}  // namespace hcclsim::sim
