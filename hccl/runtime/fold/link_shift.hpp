#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// Where a turn carries each link, as far as routes say so.
class LinkShift {
 public:
  /// Of each link whether it is touched (Coupling::touched).
  LinkShift(const sim::Cluster& cluster, const std::vector<bool>& touched);

  /// Routes that are added from now on are those of ranks of which `ranks` stand on every orbit.
  void begin_region(Rank ranks);
  /// Adds a route and its image; false if they are not alike, or a link is known to go elsewhere.
  [[nodiscard]] bool add(const sim::Route& route, const sim::Route& image);
  /// Whether notifies over a route may be like others: they take no bandwidth, but wait where a link is cut.
  [[nodiscard]] bool keeps(const sim::Route& route) const;
  /// Forgets what was added since begin_region().
  void forget_region();

  static constexpr sim::LinkId none = std::numeric_limits<sim::LinkId>::max();

  /// Where the turn carries a link that is used, else none.
  [[nodiscard]] sim::LinkId image(sim::LinkId link) const { return next_[link]; }
  /// Ranks on every orbit of those that use a link; 1 if none is known to.
  [[nodiscard]] Rank ranks(sim::LinkId link) const { return std::max(orbit_[link], Rank{1}); }

 private:
  [[nodiscard]] bool add(sim::LinkId link, sim::LinkId image);
  [[nodiscard]] bool is_touched(sim::LinkId link) const { return !touched_->empty() && (*touched_)[link]; }

  const sim::Cluster* cluster_;
  const std::vector<bool>* touched_;
  std::vector<sim::LinkId> next_;
  std::vector<sim::LinkId> previous_;
  std::vector<Rank> orbit_;         // of links: ranks on every orbit of those that use it
  std::vector<sim::LinkId> added_;  // since begin_region()
  Rank ranks_ = 1;
};

}  // namespace hcclsim::hccl
