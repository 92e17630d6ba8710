#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/network/network.hpp"

/// How busy links were over time, computed from the transfers after a simulation. The transfers under way at a date
/// determine how fast each of them flowed, because max-min fairness has one solution. So the rates are computed again
/// from the begins and ends of the transfers alone. That gives the same for both networks. Where more than links takes
/// part, such as memories of NPUs, the simulation records the rates with the transfers. The load of a link in an
/// interval is what it carried over what it could have carried, faults of the link included.
///
/// On a folded cluster (Cluster::fold()) the transfers are those of the ranks that were simulated. Each link of those
/// that are folded into one carries LinkFold::flows images of each of them at the same dates, so that bytes and numbers
/// of transfers are multiplied, and loads and times are those of the link that stands for it.
namespace hcclsim::sim {

class FaultPlan;

/// A transfer as the links saw it.
struct Flow {
  static constexpr std::uint32_t no_task = std::numeric_limits<std::uint32_t>::max();

  Rank source = 0;
  Rank destination = 0;
  std::uint32_t task = no_task;   ///< TaskId::task of the rank that moves the bytes
  Access access = Access::write;  ///< by the source, or a read by the destination
  bool counts = true;             ///< of the step; false: of the one before, which may reach into it
  Bytes bytes = 0;
  Seconds start = 0;  ///< the first byte flows: latency is over
  Seconds end = 0;
  std::vector<RateStep> rates{};  ///< from `start` on; of all flows or, if links alone limited them, of none

  /// Whose task it is.
  [[nodiscard]] Rank rank() const { return access == Access::read ? destination : source; }
};

/// Takes the flows of one iteration, and of the one before, while they are simulated.
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
    Bytes bytes = 0;              ///< carried by them, outside the intervals too
    LinkId link = 0;              ///< the busiest one
    double utilisation = 0;       ///< of it, over all intervals
    std::vector<double> busiest;  ///< the greatest load of a link
    std::vector<double> mean;     ///< over these links
  };
  struct Share {
    std::uint64_t owner = 0;
    Bytes bytes = 0;
  };
  struct OfLink {
    LinkId link = 0;
    Bytes bytes = 0;               ///< of the flows that count, outside the intervals too
    Seconds busy = 0;              ///< within the intervals: some flow is under way
    double utilisation = 0;        ///< load over all intervals
    double while_busy = 0;         ///< load over `busy`
    std::uint64_t most_flows = 0;  ///< at the same time, within the intervals
    std::vector<Share> shares{};   ///< of these bytes, by owner
    std::vector<double> load{};
  };
  std::size_t links_used = 0;
  std::vector<OfKind> kinds;  ///< in the order of LinkKind
  std::vector<OfLink> links;  ///< the busiest over all intervals first, equal ones in the order of the platform
};

/// On whose account a flow goes.
using FlowOwner = std::function<std::uint64_t(const Flow& flow)>;

/// `flows` are all flows that count, and all others that were under way in the intervals. At most `most_links` links
/// are listed, with shares if there is an `owner_of`. `faults` are those of the simulation, null if there were none.
[[nodiscard]] LinkUtilisation link_utilisation(Cluster& cluster, std::span<const Flow> flows,
                                               const Intervals& intervals, std::size_t most_links,
                                               const FlowOwner& owner_of = {}, const FaultPlan* faults = nullptr);

}  // namespace hcclsim::sim
