#pragma once

#include <cstring>
#include <string>
#include <type_traits>
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
  /// Servers that reach each other over a bus, by ports of the inner kind and the outer latency; 0: none does.
  Rank servers_per_pod = 0;
  std::string pod_bandwidth = "8GBps";
  /// Further properties of the zone: task costs.
  std::vector<std::pair<std::string, std::string>> properties{};
};

/// All task costs zero: alpha is the latency of the route alone.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> no_task_costs();

/// Writes the platform's XML to a temporary file and returns its path.
[[nodiscard]] std::string write_platform(const TestPlatform& platform);
/// The same for any text.
[[nodiscard]] std::string write_temporary(const std::string& name, const std::string& text);

/// Runs a simulation in a child and returns its list of numbers, or of structs of figures.
template <typename Simulation>
[[nodiscard]] auto in_child(const Simulation& simulation) {
  using List = std::invoke_result_t<const Simulation&>;
  using Figures = typename List::value_type;
  static_assert(std::is_trivially_copyable_v<Figures>, "a child returns bytes");
  const std::string bytes = run_in_child([&] {
    const List list = simulation();
    return std::string(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(Figures));
  });
  List list(bytes.size() / sizeof(Figures));
  if (!list.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}

/// The same for one figure, or one struct of figures.
template <typename Simulation>
[[nodiscard]] auto figures_in_child(const Simulation& simulation) {
  using Figures = std::invoke_result_t<const Simulation&>;
  static_assert(std::is_trivially_copyable_v<Figures>, "a child returns bytes");
  const std::string bytes = run_in_child([&] {
    const Figures figures = simulation();
    return std::string(reinterpret_cast<const char*>(&figures), sizeof(figures));
  });
  Figures figures{};
  std::memcpy(&figures, bytes.data(), sizeof(figures));
  return figures;
}

}  // namespace hcclsim::test
