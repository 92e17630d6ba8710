#pragma once

#include "study/run/experiment/loaded_run.hpp"
#include "study/run/experiment/sharding/sharded_networks.hpp"
#include "study/run/experiment/stages.hpp"

namespace hcclsim::study {

/// From the network of a run, or what was measured of it, to the programs of its stages. `known`: networks that runs
/// before it have cut. Adds to the run what is known of its network, and notes. Throws Error(bad_input).
[[nodiscard]] LoweredStages lower(LoadedRun& run, ShardedNetworks& known);

}  // namespace hcclsim::study
