#pragma once

#include "sim/platform/names.hpp"

namespace hcclsim::sim {

/// Checks every route of a platform file: that its ends and links exist and stand where the route can use them, that
/// none is given twice, that its zone's routing takes it, and that every two NPUs are joined. The last check looks at
/// one zone at a time: for an inner zone it asks only for a zoneRoute that leads to it, and for Floyd and Dijkstra
/// zones that the graph is connected in both directions.
void check_routes(const PlatformNames& names, PlatformProblems& problems);

}  // namespace hcclsim::sim
