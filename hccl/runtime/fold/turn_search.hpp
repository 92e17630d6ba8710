#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hccl/runtime/fold/rank_orbits.hpp"

/// Looks for a turn of the ranks that carries a Coupling and the platform into themselves (rank_orbits.hpp).
namespace hcclsim::hccl {

/// Where a turn carries each link, as far as routes say so.
class LinkShift {
 public:
  LinkShift(const sim::Cluster& cluster, const sim::FaultPlan* faults);

  /// Routes that are added from now on are those of ranks of which `ranks` stand on every orbit.
  void begin_region(Rank ranks);
  /// Adds a route and its image; false if they are not alike, or a link is known to go elsewhere.
  [[nodiscard]] bool add(const sim::Route& route, const sim::Route& image);
  /// Forgets what was added since begin_region().
  void forget_region();

  /// The first link of every orbit in place of all.
  [[nodiscard]] sim::LinkFold fold() const;

 private:
  static constexpr sim::LinkId none = std::numeric_limits<sim::LinkId>::max();

  [[nodiscard]] bool add(sim::LinkId link, sim::LinkId image);

  const sim::Cluster* cluster_;
  const sim::FaultPlan* faults_;
  std::vector<sim::LinkId> next_;
  std::vector<sim::LinkId> previous_;
  std::vector<Rank> orbit_;         // of links: ranks on every orbit of those that use it
  std::vector<sim::LinkId> added_;  // since begin_region()
  Rank ranks_ = 1;
};

class TurnSearch {
 public:
  /// What is referred to must outlive it.
  TurnSearch(sim::Cluster& cluster, const Coupling& coupling);

  /// Whether there is a turn that moves some ranks.
  [[nodiscard]] bool find();
  /// Where it carries each rank.
  [[nodiscard]] const std::vector<Rank>& turn() const { return turn_; }
  [[nodiscard]] sim::LinkFold links() const { return links_.fold(); }

 private:
  /// Groups that carry out the same schedules.
  struct Shape {
    Rank ranks = 0;
    Rank period = 0;                               // a rotation by so many places carries all schedules into themselves
    std::vector<std::pair<Rank, Rank>> transfers;  // source and destination, of the first `period` ranks
  };
  struct Family {
    std::vector<std::uint32_t> shape_of;  // of groups
    std::vector<std::uint32_t> group_of;  // of ranks
    std::vector<Rank> member_of;          // of ranks
  };
  using Ranks = std::vector<Rank>;

  void add_family(const Coupling::Family& family);
  std::uint32_t add_shape(const std::vector<const Schedule*>& schedules, Rank ranks);
  /// Ranks that depend on each other, directly or not.
  [[nodiscard]] std::vector<Ranks> regions() const;
  /// Turns regions by themselves, as far as they do.
  [[nodiscard]] bool turn_apart(const std::vector<Ranks>& regions);
  /// Ranks that are left to simulate.
  [[nodiscard]] Rank orbits() const;
  /// Tries all steps, the shortest first.
  [[nodiscard]] bool turn_region(const Ranks& region);
  /// Leaves the region as it is; false if what other regions do does not allow even that.
  [[nodiscard]] bool keep_region(const Ranks& region);
  [[nodiscard]] bool try_step(const Ranks& region, const std::vector<Ranks>& by_kind, Rank step);
  [[nodiscard]] bool carries_groups(const Ranks& region) const;
  [[nodiscard]] bool carries_messages(const Ranks& region) const;
  [[nodiscard]] bool carries_routes(const Ranks& region);
  [[nodiscard]] bool add_routes(const Communicator& group, const Shape& shape);
  [[nodiscard]] bool add_copies(Rank rank);
  [[nodiscard]] bool add_route(Rank source, Rank destination);

  sim::Cluster& cluster_;
  const Coupling& coupling_;
  std::vector<Shape> shapes_;
  std::vector<Family> families_;
  LinkShift links_;
  std::vector<Rank> turn_;
  std::uint64_t routes_ = 0;  // looked at
};

}  // namespace hcclsim::hccl
