#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// How busy links were over time, computed from the transfers after a simulation. The transfers under way at a date
/// determine how fast each of them flowed, because max-min fairness has one solution. So the rates are computed again
/// from the begins and ends of the transfers alone. That gives the same for both networks, and a simulation without
/// this report need not record anything. The load of a link in an interval is what it carried over what it could have
/// carried.
namespace hcclsim::sim {

class FaultPlan;

/// A transfer as the links saw it.
struct Flow {
  const Route* route = nullptr;
  double bytes = 0;   ///< as they load the links: with the route's factor for the direction
  Seconds start = 0;  ///< the first byte flows: latency is over
  Seconds end = 0;
};

/// Takes the flows of one training iteration while it is simulated.
struct FlowLog {
  std::int32_t iteration = 0;
  std::vector<Flow> flows{};
};

/// Equal intervals that follow each other.
struct Intervals {
  Seconds from = 0;
  Seconds to = 0;
  std::size_t count = 1;
};

/// Loads are 0 to 1 but for rounding, one per interval. A link that is not shared (FATPIPE) gives every flow its whole
/// capacity: its load is the mean of the loads by its flows.
struct LinkUtilisation {
  struct OfKind {
    LinkKind kind = LinkKind::other;
    std::size_t links = 0;        ///< number of links that carried something
    double bytes = 0;             ///< carried by them, outside the intervals too
    std::vector<double> busiest;  ///< the greatest load of a link
    std::vector<double> mean;     ///< over these links
  };
  struct OfLink {
    LinkId link = 0;
    double bytes = 0;
    std::vector<double> load;
  };
  std::vector<OfKind> kinds;  ///< in the order of LinkKind
  std::vector<OfLink> links;  ///< of each kind those whose bytes need most time, the busiest first
};

/// `flows` are all flows that were under way in the intervals. At most `most_links` links of each kind are listed. The
/// flows' routes must still be valid. `faults` are those of the simulation, null if there were none; loads are parts of
/// what links carry without them.
[[nodiscard]] LinkUtilisation link_utilisation(const Cluster& cluster, std::span<const Flow> flows,
                                               const Intervals& intervals, std::size_t most_links,
                                               const FaultPlan* faults = nullptr);

}  // namespace hcclsim::sim
