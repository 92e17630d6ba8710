#pragma once

#include <span>
#include <string_view>

#include "base/child_process.hpp"
#include "sim/cluster.hpp"
#include "study/platform/platform.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::study {

/// Does something that loads a platform in a child, since SimGrid loads one per process. Throws what it throws.
template <typename Work>
auto in_own_process(const Work& work) {
  return run_in_child(work);
}

/// Loads the platform in a child, since SimGrid loads one per process, and returns what `work` makes there of the
/// sim::Cluster: what the codec takes. Throws what loading and `work` throw.
template <typename Work>
auto on_cluster(const PlatformSpec& spec, const Work& work) {
  const std::string file = find_platform(spec.file);
  return in_own_process([&] {
    sim::Cluster cluster(file, spec.edits, spec.routing);
    return work(cluster);
  });
}

/// The same with a LoadedPlatform; `obeyed` as that takes it.
template <typename Work>
auto on_platform(const PlatformSpec& spec, std::span<const std::string_view> obeyed, const Work& work) {
  return on_cluster(spec, [&](sim::Cluster& cluster) {
    LoadedPlatform platform(spec.rank_table, spec.hccl_settings, obeyed, cluster);
    return work(platform);
  });
}

}  // namespace hcclsim::study
