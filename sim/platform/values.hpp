#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The values of SimGrid's attributes. SimGrid assumes a default for a missing unit and accepts a negative bandwidth;
/// here both are wrong. Each check returns what is wrong with the value, or an empty string.
namespace hcclsim::sim {

[[nodiscard]] std::string bandwidth_fault(std::string_view text);  ///< 1 to 1e15 B/s, with unit: "25GBps", "100Gbps"
[[nodiscard]] std::string latency_fault(std::string_view text);    ///< not negative, with unit unless 0: "1us"
[[nodiscard]] std::string speeds_fault(std::string_view text);     ///< one or more, positive: "2.6Gf", "1Gf,2Gf"
[[nodiscard]] std::string count_fault(std::string_view text);      ///< whole number of at least 1
[[nodiscard]] std::string number_fault(std::string_view text);     ///< finite number

/// The same for a bandwidth that has been read from `text`.
[[nodiscard]] std::string plausible_bandwidth_fault(std::string_view text, double bytes_per_second);

/// "0-3,8" is {0, 1, 2, 3, 8}. Nothing for a malformed list, an end before its start, or more than `limit` numbers.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_radical(std::string_view text, std::size_t limit);

/// The number of hosts of a cluster with these topo_parameters (topologies FAT_TREE, TORUS, DRAGONFLY); nothing if the
/// parameters do not have the form that the topology needs.
[[nodiscard]] std::optional<std::uint64_t> topology_hosts(std::string_view topology, std::string_view parameters);

/// The number of links that SimGrid makes for a cluster whose topo_parameters have the right form.
[[nodiscard]] double topology_links(std::string_view topology, std::string_view parameters);

/// The form that topology_hosts expects, for messages.
[[nodiscard]] std::string_view topology_form(std::string_view topology);

}  // namespace hcclsim::sim
