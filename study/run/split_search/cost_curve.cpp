#include "study/run/split_search/cost_curve.hpp"

#include <algorithm>
#include <cmath>

#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/simulate_each.hpp"

namespace hcclsim::study {

std::vector<CostPoint> simulate_costs(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                                      const hccl::TrainingStep& training, DataType type, std::span<const Bytes> sizes) {
  const hccl::Communicator world = hccl::world_communicator(training.step.npus);
  const hccl::Topology topology = hccl::topology_of(world, cluster);
  std::vector<std::vector<hccl::CollectiveCall>> calls;
  for (const Bytes size : sizes) {
    const std::uint64_t elements = (size + size_of(type) - 1) / size_of(type);
    const auto schedule = make_collective(training.allreduce_request(elements, type), topology, soc);
    calls.push_back({{.name = "allreduce", .schedule = schedule}});
  }
  const std::vector<hccl::SimulatedCollectives> results =
      simulate_each(cluster, soc, costs, {.network = sim::NetworkKind::fluid}, calls);
  std::vector<CostPoint> points;
  for (std::size_t i = 0; i < sizes.size(); ++i) points.push_back({sizes[i], results[i].calls.front().duration});
  return points;
}

std::vector<Bytes> sizes_up_to(Bytes largest, std::size_t most) {
  constexpr Bytes smallest = 1024;
  const Bytes end = std::max<Bytes>(largest, 2 * smallest);
  const double factor =
      std::pow(static_cast<double>(end) / smallest, 1 / static_cast<double>(std::max<std::size_t>(most, 2) - 1));
  std::vector<Bytes> sizes;
  for (double size = smallest; size < static_cast<double>(end); size *= factor) {
    // Whole kibibytes keep slices of all ranks equal.
    const Bytes rounded = static_cast<Bytes>(std::llround(size / smallest)) * smallest;
    if ((sizes.empty() || rounded > sizes.back()) && rounded < end) sizes.push_back(rounded);
  }
  sizes.push_back(end);
  return sizes;
}

}  // namespace hcclsim::study
