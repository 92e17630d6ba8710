#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// Max-min fair rates of flows over links, kept up to date as flows come and go. Rates are raised together until a link
/// is full; its flows keep their share, and the others go on. A change can alter only flows that are connected with it
/// by a chain of shared links, so solve() works on these components alone. A flow that has its links to itself, the
/// common case of a collective on fast links, costs one look at each of them. A FATPIPE link connects no flows: it
/// bounds the rate of each.
namespace hcclsim::sim {

using FlowId = std::uint32_t;

class MaxMin {
 public:
  /// Takes the links with their capacities under the cluster's values in use.
  explicit MaxMin(const Cluster& cluster);

  /// A flow over these links, which does not flow before start(). Ids of removed flows are used again.
  [[nodiscard]] FlowId add(std::span<const LinkId> links);
  void start(FlowId id);
  /// Stops a flow that was started, and forgets it.
  void remove(FlowId id);

  /// Changes the capacity of a link, 0 if it is cut. Flows that share it have their new rates after solve(); those on a
  /// FATPIPE link when they are renewed.
  void set_capacity(LinkId id, BytesPerSecond capacity);
  /// Takes the bounds of FATPIPE links as they are now for a flow over `links` that was started; one that is held has
  /// rate 0, and leaves its links to others.
  void renew(FlowId id, std::span<const LinkId> links, bool held);

  /// Brings all rates up to date and returns the flows whose rate has changed (new flows had rate 0); valid until the
  /// next call.
  [[nodiscard]] std::span<const FlowId> solve();
  [[nodiscard]] BytesPerSecond rate(FlowId flow) const { return flows_[flow].rate; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;
  static constexpr double unbounded = std::numeric_limits<double>::infinity();

  /// A flow's place on one link: element of the link's list.
  struct Hop {
    LinkId link = 0;
    FlowId flow = 0;
    std::uint32_t next = none;
    std::uint32_t previous = none;
  };

  struct SharedLink {
    double capacity = 0;
    std::uint32_t first = none;  // hop
    std::uint32_t flows = 0;
    // While a component is solved: what is left, for how many flows whose rate is open.
    double left = 0;
    std::uint32_t open = 0;
    bool visited = false;
    bool changed = false;  // it is in changed_links_
  };

  struct Flow {
    double rate = 0;
    double bound = unbounded;  // by FATPIPE links
    std::uint32_t first_hop = 0;
    std::uint32_t hops = 0;
    bool visited = false;
    bool open = false;
  };

  /// The least rate that a link allows its open flows, as it was last computed; it is a lower bound of the present
  /// value.
  struct Share {
    double rate = 0;
    LinkId link = 0;
  };

  [[nodiscard]] std::span<Hop> hops_of(const Flow& flow) { return {hops_.data() + flow.first_hop, flow.hops}; }
  [[nodiscard]] double bound_of(std::span<const LinkId> links) const;
  [[nodiscard]] bool alone(const Flow& flow) const;
  void set_rate(FlowId id, double rate);
  void visit(LinkId id);
  void gather_component(LinkId first);
  void fill_component();
  void fix(FlowId id, double rate);

  std::vector<SharedLink> links_;
  std::vector<bool> fat_;                  // by link: FATPIPE
  std::vector<Flow> flows_;                // by id
  std::vector<Hop> hops_;                  // a flow's are contiguous
  std::vector<std::vector<FlowId>> free_;  // by number of hops: ids whose hops can be used again
  std::vector<FlowId> started_;            // since the last solve
  std::vector<LinkId> changed_links_;
  std::vector<FlowId> changed_;
  // The component that is being solved.
  std::vector<LinkId> component_links_;
  std::vector<FlowId> component_flows_;
  std::vector<FlowId> bounded_;
  std::vector<Share> shares_;
};

}  // namespace hcclsim::sim
