#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "study/communication/replay/replay.hpp"
#include "tests/study/communication/replay/chakra_file.hpp"
#include "tests/support/simulation.hpp"

/// Traces of a few nodes, on platforms whose times are computed by hand.
namespace hcclsim::test {

/// Ranks by their files; groups by their names.
inline study::ExecutionTrace chakra_trace(const std::vector<std::vector<ChakraNode>>& ranks,
                                          const study::ChakraGroups& groups = {}, const study::ChakraSpec& spec = {}) {
  study::ExecutionTrace trace;
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    const std::string bytes = chakra_file(ranks[rank]);
    add_chakra({.bytes = bytes, .name = "t." + std::to_string(rank) + ".et", .rank = rank}, spec, groups, trace);
    trace.trace_of.push_back(rank);
  }
  trace.groups.front() = hccl::world_communicator(static_cast<Rank>(ranks.size()));
  return trace;
}

/// Links of 10 GB/s, of 1 us; nothing else takes time.
inline std::string hand_platform(Rank npus) {
  return write_platform({.npus_per_server = npus, .properties = no_task_costs()});
}

inline study::ReplayResult replayed(const study::ExecutionTrace& trace, const study::ReplaySpec& spec = {},
                                    const std::string& platform = "") {
  const Rank least = 2;
  sim::Cluster cluster(platform.empty() ? hand_platform(std::max(trace.ranks(), least)) : platform);
  study::LoadedPlatform loaded({}, {}, study::obeyed_by_replays, cluster);
  return replay_on(loaded, spec, trace);
}

/// A message of so many bytes between two NPUs of the platform.
inline Seconds message_time(double bytes) { return 1e-6 + bytes / 10e9; }

}  // namespace hcclsim::test
