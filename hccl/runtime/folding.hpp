#pragma once

#include <limits>
#include <vector>

#include "base/units.hpp"
#include "hccl/runtime/simulate.hpp"
#include "sim/cluster.hpp"

/// One server in place of all, where that changes no figure.
///
/// *When.* A collective alone, without skew, whose schedule is carried into itself by turning ranks, one or up to a
/// server at a time (check/symmetry/symmetry.hpp), on G servers of m NPUs such that the shift s by m ranks, modulo all
/// of them, carries the platform into itself: for every pair of ranks between which the schedule transfers, the route
/// of the shifted pair has as many links, the same latency, transport and factors, and s maps link i of the one to link
/// i of the other, one to one over all routes, to a link of the same capacity, shared or not.
///
/// *Why it is exact.* Let all ranks be in states that s carries into each other, as they are in the beginning. Posts,
/// waits and set-ups have the same dates in the images. Transfers under way are carried into each other with what is
/// left of them, along links that are, so the max-min fair rates, of which there is one solution, are equal, too. Hence
/// it stays so at every date, and the first m ranks say what all do: a notify of rank x is set by the images of posts
/// to rank x, and a link whose orbit under s has k links carries G/k times what the first m ranks send over the orbit.
/// One link in place of the orbit gets the capacity k/G of one, for what these ranks send. What is not shared (FATPIPE)
/// keeps its capacity.
namespace hcclsim::hccl {

/// Folds the cluster while it lives, if the options ask for it and it is exact.
class Folding {
 public:
  Folding(sim::Cluster& cluster, const SimulateOptions& options, const std::vector<CollectiveCall>& calls);
  ~Folding();
  Folding(const Folding&) = delete;
  Folding& operator=(const Folding&) = delete;

  /// Machine::period.
  [[nodiscard]] Rank period() const { return period_; }
  /// Servers that one stands for; 1 if nothing is folded.
  [[nodiscard]] std::uint32_t servers() const { return servers_; }

 private:
  sim::Cluster& cluster_;
  Rank period_ = std::numeric_limits<Rank>::max();
  std::uint32_t servers_ = 1;
};

}  // namespace hcclsim::hccl
