#pragma once

#include <simgrid/forward.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/source/platform_source.hpp"

/// A platform file loaded into SimGrid: its hosts and links as SimGrid has read them, and the ways that it finds.
namespace hcclsim::sim {

class Cluster;

/// The second host that an NPU with property `roce` has, from and to which transfers over its RoCE port go. SimGrid has
/// one route between two hosts, and connects directly only hosts of one zone: all these hosts are in one zone.
[[nodiscard]] std::string port_host_of(const std::string& npu);

/// Loads the file of the cluster, with its edits. Latencies of SimGrid's links become 0: it shares bandwidth by
/// latency, which is not max-min fair, so they are paid before the bytes flow. Throws Error(bad_input, "platform") for
/// what SimGrid refuses, and Error(internal) if this process has a platform already.
[[nodiscard]] std::unique_ptr<PlatformSource> load_into_simgrid(const Cluster& cluster);

}  // namespace hcclsim::sim
