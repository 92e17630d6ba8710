#pragma once

#include <memory>

#include "sim/source/platform_source.hpp"

/// Reads platform files by ourselves, some thirty milliseconds and half of the memory sooner than SimGrid is loaded:
/// zones with routing Full, Cluster and None, in one another, or one zone of routing Dijkstra or Floyd with
/// routes of one link (route_graph.hpp); with links of constant speed, host_links, routes, zoneRoutes and bypassRoutes
/// between hosts of one zone. That is what `hcclsim platform generate` writes but for clusters of topology FAT_TREE.
/// For files that hold anything else there is SimGrid. Routes are found as SimGrid finds them: between zones by the
/// zoneRoute of the two zones in which the ways part, and from and to its gateways in the same way (tests compare the
/// two link by link).
namespace hcclsim::sim {

struct PlatformDocument;

/// The source of a file that passed its check; null if we do not read what it holds. `document` must outlive what is
/// visited, but is not needed to find ways.
[[nodiscard]] std::unique_ptr<PlatformSource> make_plain_source(const PlatformDocument& document);

}  // namespace hcclsim::sim
