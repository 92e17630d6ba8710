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
///
/// Memories of NPUs are further links, if they are asked for. A flow may load a memory with several times its rate: the
/// rates that are raised together are those of the flows. A memory whose flows together cannot fill it, whatever the
/// others do, takes no part in any solution and connects nothing. So as long as no memory can be full, all rates are to
/// the last bit those without memories, and cost as much.
namespace hcclsim::sim {

using FlowId = std::uint32_t;

/// How a flow loads the memory of an NPU.
struct MemoryUse {
  Rank npu = 0;
  double times = 1;  ///< bytes read from and written to it, per byte of the flow; above 0
};

class MaxMin {
 public:
  static constexpr BytesPerSecond unbounded = std::numeric_limits<double>::infinity();

  /// Takes the links with their capacities under the cluster's values in use. `memory` is what the memory of each NPU
  /// reads and writes together; 0: no flow uses one.
  explicit MaxMin(const Cluster& cluster, BytesPerSecond memory = 0);

  /// A flow over these links and memories, no faster than `bound`, which does not flow before start(). Ids of removed
  /// flows are used again.
  [[nodiscard]] FlowId add(std::span<const LinkId> links, std::span<const MemoryUse> memories = {},
                           BytesPerSecond bound = unbounded);
  void start(FlowId id);
  /// Stops a flow that was started, and forgets it.
  void remove(FlowId id);

  /// Brings all rates up to date and returns the flows whose rate has changed (new flows had rate 0); valid until the
  /// next call.
  [[nodiscard]] std::span<const FlowId> solve();
  [[nodiscard]] BytesPerSecond rate(FlowId flow) const { return flows_[flow].rate; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

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
    double bound = unbounded;  // its own, and by FATPIPE links
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
  [[nodiscard]] double weight(std::uint32_t hop) const { return weights_.empty() ? 1 : weights_[hop]; }
  [[nodiscard]] bool is_memory(LinkId id) const { return id >= first_memory_; }
  [[nodiscard]] double wanted_of(const Flow& flow, std::uint32_t hop) const;
  [[nodiscard]] bool never_full(LinkId id) const;
  [[nodiscard]] bool hindered(const Flow& flow) const;
  [[nodiscard]] double alone_rate(const Flow& flow) const;
  [[nodiscard]] double open_share(LinkId id) const;
  void note_change(LinkId id);
  void set_rate(FlowId id, double rate);
  void visit(LinkId id);
  void gather_component(LinkId first);
  void fill_component();
  void fix(FlowId id, double rate);

  std::vector<SharedLink> links_;  // of the cluster, then the memories of its NPUs
  LinkId first_memory_;
  std::vector<bool> fat_;                  // by link: FATPIPE
  std::vector<Flow> flows_;                // by id
  std::vector<Hop> hops_;                  // a flow's are contiguous
  std::vector<double> weights_;            // of the hops: load per rate of the flow; empty without memories: all 1
  std::vector<double> open_weights_;       // by link, while a component is solved: of its open flows
  std::vector<double> wanted_;             // by memory: load if it were in no flow's way
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
