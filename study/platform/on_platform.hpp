#pragma once

#include <span>
#include <string_view>

#include "base/child_process.hpp"
#include "sim/cluster.hpp"
#include "sim/network_kind.hpp"
#include "study/platform/platform.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::study {

/// Loads the platform and returns what `work` makes there of the sim::Cluster. Where SimGrid reads the file or moves
/// the bytes, of which a process holds one simulation, this happens in a child, and the result is what the codec takes.
/// Throws what loading and `work` throw.
template <typename Work>
auto on_cluster(const PlatformSpec& spec, sim::NetworkKind network, const Work& work) {
  const std::string file = find_platform(spec.file);
  if (network == sim::NetworkKind::fluid) {
    if (const auto cluster = sim::Cluster::without_simgrid(file, spec.edits, spec.routing)) return work(*cluster);
  }
  return run_in_child([&] {
    sim::Cluster cluster(file, spec.edits, spec.routing);
    return work(cluster);
  });
}

template <typename Work>
auto on_cluster(const PlatformSpec& spec, const Work& work) {
  return on_cluster(spec, sim::NetworkKind::fluid, work);
}

/// The same with a LoadedPlatform; `obeyed` as that takes it.
template <typename Work>
auto on_platform(const PlatformSpec& spec, std::span<const std::string_view> obeyed, sim::NetworkKind network,
                 const Work& work) {
  return on_cluster(spec, network, [&](sim::Cluster& cluster) {
    LoadedPlatform platform(spec.rank_table, spec.hccl_settings, obeyed, cluster);
    return work(platform);
  });
}

template <typename Work>
auto on_platform(const PlatformSpec& spec, std::span<const std::string_view> obeyed, const Work& work) {
  return on_platform(spec, obeyed, sim::NetworkKind::fluid, work);
}

}  // namespace hcclsim::study
