#include "study/platform/routing_spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Simulates under this routing in a child of its own.
ChildOf<std::vector<Seconds>> times_under(sim::Cluster& cluster, const sim::Routing& routing,
                                          const RoutingTimes::Simulate& simulate) {
  return ChildOf<std::vector<Seconds>>([&cluster, &simulate, routing] {
    cluster.use_routing(routing);
    return simulate();
  });
}

/// With each seed, as many at a time as this computer has processors.
std::vector<std::vector<Seconds>> times_of_seeds(sim::Cluster& cluster, std::uint32_t seeds,
                                                 const RoutingTimes::Simulate& simulate) {
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  sim::Routing routing = cluster.routing();
  std::deque<ChildOf<std::vector<Seconds>>> under_way;
  std::vector<std::vector<Seconds>> times;
  while (times.size() < seeds) {
    while (under_way.size() < most && times.size() + under_way.size() < seeds) {
      under_way.push_back(times_under(cluster, routing, simulate));
      ++routing.seed;
    }
    times.push_back(under_way.front().result());
    under_way.pop_front();
  }
  return times;
}

}  // namespace

Seconds RoutingSpread::mean() const {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

Seconds RoutingSpread::worst() const { return *std::max_element(times.begin(), times.end()); }

std::uint64_t RoutingSpread::worst_seed() const {
  const auto worst = std::max_element(times.begin(), times.end());
  return first_seed + static_cast<std::uint64_t>(worst - times.begin());
}

void note_seeds(const sim::Cluster& cluster, std::vector<std::string>& notes) {
  if (cluster.routing().kind == sim::RoutingKind::ecmp) return;
  notes.push_back(fmt::format(
      "--routing-seeds has no effect: routing {} has no hash; --routing ecmp has, on fabrics of several ways",
      text_of(cluster.routing())));
}

RoutingTimes::RoutingTimes(sim::Cluster& cluster, std::uint32_t seeds, Simulate simulate)
    : first_seed_(cluster.routing().seed), times_([&cluster, seeds, simulate = std::move(simulate)] {
        Times times{.of_seeds = times_of_seeds(cluster, seeds, simulate), .ideal = {}, .no_ideal = {}};
        try {
          times.ideal = times_under(cluster, {.kind = sim::RoutingKind::ideal}, simulate).result();
        } catch (const Error& error) {
          if (error.kind() != "routing") throw;
          times.no_ideal = error.what();
        }
        return times;
      }) {}

std::vector<RoutingSpread> RoutingTimes::finish() {
  const Times times = times_.result();
  std::vector<RoutingSpread> spreads(times.of_seeds.front().size());
  for (std::size_t point = 0; point < spreads.size(); ++point) {
    RoutingSpread& spread = spreads[point];
    spread.first_seed = first_seed_;
    for (const std::vector<Seconds>& of_seed : times.of_seeds) spread.times.push_back(of_seed[point]);
    if (times.no_ideal.empty()) spread.ideal = times.ideal[point];
    spread.no_ideal = times.no_ideal;
  }
  return spreads;
}

}  // namespace hcclsim::study
