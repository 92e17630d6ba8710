#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// How busy links were over time, found from the transfers after a simulation. Which transfers were under way at a date
/// decides how fast each of them flowed (max-min fairness has one solution), so the rates that the network had are
/// solved again from begins and ends alone: the same for both networks, and a simulation that nobody asks this of keeps
/// nothing. The load of a link in an interval is what it carried in it over what it could have carried.
namespace hcclsim::sim {

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

/// Loads are 0 to 1, one per interval, rounding apart. A link that is not shared (FATPIPE) is there for each flow
/// anew: its load is the mean of its flows'.
struct LinkUtilisation {
  struct OfKind {
    LinkKind kind = LinkKind::other;
    std::size_t links = 0;        ///< that carried something
    double bytes = 0;             ///< that they carried, with those outside the intervals
    std::vector<double> busiest;  ///< the greatest load of a link
    std::vector<double> mean;     ///< over these links
  };
  struct OfLink {
    LinkId link = 0;
    double bytes = 0;
    std::vector<double> load;
  };
  std::vector<OfKind> kinds;  ///< in the order of LinkKind
  std::vector<OfLink> links;  ///< of each kind those that need most time for their bytes, first the busiest
};

/// `flows`: all that were under way in the intervals. Names at most `most_links` links of a kind. The flows' routes
/// must still be good.
[[nodiscard]] LinkUtilisation link_utilisation(const Cluster& cluster, std::span<const Flow> flows,
                                               const Intervals& intervals, std::size_t most_links);

}  // namespace hcclsim::sim
