#pragma once

#include <simgrid/s4u/Engine.hpp>

/// The one SimGrid engine of this process, configured so that bytes flow with exact max-min fairness: CM02 without
/// cross-traffic, TCP window or loss of precision. For the files of sim/ only.
namespace hcclsim::sim {

/// The engine: the one that exists, or a new one that lives until the process ends. An engine of somebody else is
/// adopted; unless it has a platform already, its network is configured as ours would be.
simgrid::s4u::Engine& engine();

}  // namespace hcclsim::sim
