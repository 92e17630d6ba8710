#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/units.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::cli {

enum class ShowFormat : std::uint8_t { text, json };

/// Parses "0:9"; throws Error(bad_input, "route").
[[nodiscard]] std::pair<Rank, Rank> parse_route(const std::string& text);

/// What `platform show` prints of a cluster: servers, NPUs, links by kind with their ranges, costs of tasks, and one
/// route with its links and the parts of its alpha. Speeds are GB/s in text, bytes per second in JSON. Throws
/// Error(bad_input, "route") if the cluster has no such NPUs.
[[nodiscard]] std::string show_cluster(sim::Cluster& cluster, const std::optional<std::pair<Rank, Rank>>& route,
                                       ShowFormat format);

}  // namespace hcclsim::cli
