#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/units.hpp"

/// Platforms made for a test, and simulations in processes of their own.
namespace hcclsim::test {

/// A cluster in which every pair of NPUs of a server has a link of its own, and NPUs of different servers meet through
/// one port each, or another one within a super-pod.
struct TestPlatform {
  Rank servers = 1;
  Rank npus_per_server = 2;
  std::string soc = "Ascend910A";
  std::string inner_kind = "hccs";
  std::string inner_bandwidth = "10GBps";
  std::string inner_latency = "1us";
  std::string outer_kind = "roce";
  std::string outer_bandwidth = "5GBps";
  std::string outer_latency = "1us";  ///< of each of the two ports on the way
  bool one_port = false;              ///< of each server, for all of its NPUs; named by its number
  /// Servers that reach each other over a bus, by ports of the inner kind and the outer latency; 0: none does.
  Rank servers_per_pod = 0;
  std::string pod_bandwidth = "8GBps";
  /// Speed of the links between NPUs and the CPU of their server, without latency; empty: there are no CPUs.
  std::string host_bandwidth{};
  bool one_host_link = false;    ///< of each server, for all of its NPUs
  bool over_host_links = false;  ///< NPUs of a server meet there, and have no inner links
  /// Further properties of the zone: task costs.
  std::vector<std::pair<std::string, std::string>> properties{};
};

/// All task costs zero: alpha is the latency of the route alone.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> no_task_costs();

/// Writes the platform's XML to a temporary file and returns its path. Different platforms have different paths.
[[nodiscard]] std::string write_platform(const TestPlatform& platform);
/// The same for any text.
[[nodiscard]] std::string write_temporary(const std::string& name, const std::string& text);

/// Runs a simulation in a child and returns its figures.
template <typename Simulation>
[[nodiscard]] auto in_child(const Simulation& simulation) {
  return run_in_child(simulation);
}

}  // namespace hcclsim::test
