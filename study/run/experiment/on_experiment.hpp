#pragma once

#include "study/platform/on_platform.hpp"
#include "study/run/experiment/experiment.hpp"

namespace hcclsim::study {

/// Loads the platform and returns what `work` makes there of the Experiment (on_cluster() of
/// study/platform/on_platform.hpp). Throws what loading and `work` throw.
template <typename Work>
auto on_experiment(const RunSpec& spec, const Work& work) {
  return on_cluster(spec.platform, spec.simulation.network, [&](sim::Cluster& cluster) {
    Experiment experiment(spec, cluster);
    return work(experiment);
  });
}

}  // namespace hcclsim::study
