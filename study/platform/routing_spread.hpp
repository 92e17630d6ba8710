#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/units.hpp"
#include "sim/cluster.hpp"

/// What the hash of routing ecmp does to a time: the same simulation with other seeds, and with ideal routing. Each is
/// a simulation in a child of the process that has loaded the platform.
namespace hcclsim::study {

struct RoutingSpread {
  std::uint64_t first_seed = 1;
  std::vector<Seconds> times{};    ///< with first_seed, first_seed + 1, …
  std::optional<Seconds> ideal{};  ///< none: see no_ideal
  std::string no_ideal{};          ///< why ideal routing has no meaning on this fabric; empty: it has

  [[nodiscard]] Seconds mean() const;
  [[nodiscard]] Seconds worst() const;
  [[nodiscard]] std::uint64_t worst_seed() const;
};

/// Says that seeds which were asked for do nothing, if the cluster's routing has no hash.
void note_seeds(const sim::Cluster& cluster, std::vector<std::string>& notes);

class RoutingTimes {
 public:
  /// Times of some points under the routing of the cluster, with free choice of how they are simulated.
  using Simulate = std::function<std::vector<Seconds>()>;

  /// Starts in the background, for a cluster with routing ecmp: with `seeds` seeds from the cluster's own on. Must be
  /// called before this process simulates anything. What `simulate` refers to must outlive the object.
  RoutingTimes(sim::Cluster& cluster, std::uint32_t seeds, Simulate simulate);

  /// Waits for the results, one per point.
  [[nodiscard]] std::vector<RoutingSpread> finish();

 private:
  /// By seed, then with ideal routing, unless there is a reason why not.
  struct Times {
    std::vector<std::vector<Seconds>> of_seeds;
    std::vector<Seconds> ideal;
    std::string no_ideal;
  };

  std::uint64_t first_seed_;
  ChildOf<Times> times_;
};

}  // namespace hcclsim::study
