#include "hccl/runtime/simulate_each.hpp"

#include <algorithm>
#include <deque>
#include <thread>
#include <tuple>
#include <utility>

#include "base/child_process.hpp"

namespace hcclsim::hccl {
namespace {

/// A result without its trace.
using SentTimes = std::tuple<std::vector<CollectiveTime>, Seconds, std::uint32_t, std::uint64_t>;

}  // namespace

std::vector<SimulatedCollectives> simulate_each(sim::Cluster& cluster, const device::Soc& soc,
                                                const device::TaskCosts& costs, const SimulateOptions& options,
                                                const std::vector<std::vector<CollectiveCall>>& points) {
  SimulateOptions untraced = options;
  untraced.trace = false;
  std::vector<SimulatedCollectives> results;
  if (options.work != nullptr) options.work->plan(points.size());
  const auto count = [&options] {
    if (options.work != nullptr) options.work->done();
  };
  if (options.network == sim::NetworkKind::fluid) {
    for (const auto& calls : points) {
      results.push_back(simulate_collectives(cluster, soc, costs, untraced, calls));
      count();
    }
    return results;
  }
  const std::size_t at_once = std::max(1U, std::thread::hardware_concurrency());
  std::deque<ChildOf<SentTimes>> children;
  for (std::size_t started = 0; results.size() < points.size();) {
    for (; started < points.size() && children.size() < at_once; ++started) {
      children.emplace_back([&, started]() -> SentTimes {
        SimulatedCollectives result = simulate_collectives(cluster, soc, costs, untraced, points[started]);
        return {std::move(result.calls), result.makespan, result.simulated, result.transfers};
      });
    }
    SimulatedCollectives& result = results.emplace_back();
    std::tie(result.calls, result.makespan, result.simulated, result.transfers) = children.front().result();
    children.pop_front();
    count();
  }
  return results;
}

}  // namespace hcclsim::hccl
