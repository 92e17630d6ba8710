#pragma once

#include <string>

#include "study/compare/tune/result.hpp"
#include "study/compare/tune/spec.hpp"
#include "study/platform/on_platform.hpp"
#include "study/run/split_search/split_search.hpp"

namespace hcclsim::study {

/// Simulates the step and its allreduces, finds the best split, and simulates it and what it is compared with. To be
/// called once per process with the network `simgrid`. `stage` is told what is being done, several times per second
/// while that takes long. Throws Error(bad_input) for what is wrong with spec and files.
[[nodiscard]] TuneResult tune(
    const TuneSpec& spec, sim::Cluster& cluster, const Stage& stage = [](const std::string& /*what*/) {});

/// Loads the platform and does there what `work` does with the sim::Cluster (on_platform.hpp).
template <typename Work>
auto on_tuned_platform(const TuneSpec& spec, const Work& work) {
  return on_cluster(spec.run.platform, spec.run.simulation.network, work);
}

/// Whether not a split is looked for but the speed of links at which compression pays (compression_search.hpp).
[[nodiscard]] inline bool tunes_compression(const TuneSpec& spec) { return spec.run.step.compression.has_value(); }

/// Whether not a split is looked for but the fusion of collectives (fusion_search.hpp).
[[nodiscard]] inline bool tunes_fusion(const TuneSpec& spec) { return !spec.run.is_data_parallel(); }

}  // namespace hcclsim::study
