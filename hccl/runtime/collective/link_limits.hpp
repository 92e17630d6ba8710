#pragma once

#include "base/units.hpp"
#include "hccl/runtime/collective/link_loads.hpp"
#include "hccl/runtime/collective/path_time.hpp"
#include "hccl/runtime/machine.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::hccl {

/// A transfer of a queue between two NPUs.
struct LinkTransfer {
  const sim::Route* route = nullptr;
  BytesPerSecond rate = 0;      ///< if its links are private; else 0
  sim::LinkId slowest = 0;      ///< of its links
  BytesPerSecond capacity = 0;  ///< of its slowest link
  Bytes bytes = 0;              ///< of what is under way
  Seconds first_byte = 0;       ///< after set-up and latency
};

/// What limits the transfers of a collective: which link, and how much time it takes from them.
class LinkLimits {
 public:
  /// `loads`: of the links so far; both must outlive it.
  LinkLimits(const Machine& machine, const LinkLoads& loads) : machine_(machine), loads_(loads) {}

  /// The link that limits a transfer over private links: the slowest one.
  [[nodiscard]] sim::LinkId slowest_of(const sim::Route& route) const;
  /// Adds a transfer that ends at this date to the path that leads over it.
  void add(const LinkTransfer& transfer, Seconds end, bool reads, PathTime& path) const;
  /// Names the first link of the platform file of those that limit as much as the ones of the path: the same whichever
  /// of several equal paths was followed, and whichever ranks stand for others.
  void name_first_links(PathTime& path) const;

 private:
  /// What a link can carry during a transfer, faults of the link included.
  [[nodiscard]] BytesPerSecond capacity_during(const LinkTransfer& transfer, Seconds end, sim::LinkId link) const;
  /// How long a link needs for all that it has carried so far, at the capacity that it has during that transfer.
  [[nodiscard]] Seconds load_during(const LinkTransfer& transfer, Seconds end, sim::LinkId link) const;
  /// Whether transfers over the link come one after the other.
  [[nodiscard]] bool is_private(sim::LinkId link) const;
  /// The link that limits a transfer over links that are not private: the one that has carried most so far.
  [[nodiscard]] sim::LinkId busiest_of(const LinkTransfer& transfer, Seconds end) const;
  /// Whether a link limits the path of the transfer more than the one that is named so far.
  [[nodiscard]] bool limits_more(const LinkTransfer& transfer, Seconds end, sim::LinkId link, sim::LinkId named) const;
  /// Whether two links limit alike, so that either may be named.
  [[nodiscard]] bool limits_as_much(sim::LinkId link, sim::LinkId other) const;

  const Machine& machine_;
  const LinkLoads& loads_;
};

}  // namespace hcclsim::hccl
