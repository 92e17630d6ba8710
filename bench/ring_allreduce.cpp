#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/runtime/simulate.hpp"

/// bench_ring_allreduce PLATFORM MIB [simgrid|fluid]: a flat ring allreduce over all NPUs of a platform, every transfer
/// simulated. Prints the simulated seconds and the number of transfers.
namespace {

using namespace hcclsim;

void simulate(const std::string& platform, Bytes bytes, sim::NetworkKind kind) {
  sim::Cluster cluster(platform);
  std::vector<std::string> notes;
  const device::TaskCosts costs = device::read_task_costs(cluster, notes);
  const device::Soc soc = device::resolve_soc(cluster, 0, notes);
  const auto schedule = std::make_shared<const hccl::Schedule>(hccl::ring_allreduce({cluster.size(), bytes / 4}, true));
  const hccl::SimulatedCollectives simulated =
      hccl::simulate_collectives(cluster, soc, costs, {.network = kind}, {{.name = "allreduce", .schedule = schedule}});
  fmt::print("{} NPUs: {:.9f} s simulated, {} transfers\n", cluster.size(), simulated.makespan, simulated.transfers);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: bench_ring_allreduce PLATFORM MIB [simgrid|fluid]\n");
    return 2;
  }
  try {
    const bool reference = argc == 4 && std::string(argv[3]) == "simgrid";
    simulate(argv[1], std::strtoull(argv[2], nullptr, 10) << 20,
             reference ? sim::NetworkKind::simgrid : sim::NetworkKind::fluid);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
