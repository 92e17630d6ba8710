#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// Max-min fair rates of flows over links, kept up to date as flows come and go. Rates are raised together until a link
/// is full; its flows keep their share, and the others go on. A change can alter only flows that are connected with it
/// by a chain of *tight* links, so solve() works on these components alone. A link is tight if its flows were more than
/// it carries, each as fast as its bound and the capacities of its other links let it be; one that is not limits
/// nobody, whatever there is besides. A flow without tight links, the common case of a collective on fast links, costs
/// one look at each of them. A FATPIPE link connects no flows: it bounds the rate of each.
///
/// Memories of NPUs are further links, if they are asked for. A flow may load a memory with several times its rate: the
/// rates that are raised together are those of the flows. Most memories are *leaves*: what they would allow every flow
/// if none of them had anything else in its way is more than links allow those that pass on to other places. Then these
/// flows do not depend on the memory, and it only remains to share what they leave among the flows that stay within the
/// NPU. So as long as all memories are leaves, flows over links have to the last bit the rates that they have without
/// memories, and only the NPUs at their ends are looked at besides.
namespace hcclsim::sim {

using FlowId = std::uint32_t;

/// How a flow loads a memory.
struct MemoryUse {
  std::uint32_t memory = 0;
  double times = 1;  ///< bytes read from and written to it, per byte of the flow; above 0
};

class MaxMin {
 public:
  static constexpr BytesPerSecond unbounded = std::numeric_limits<double>::infinity();

  /// Takes the links with their capacities under the cluster's values in use. `memories`: what each of them reads and
  /// writes together.
  explicit MaxMin(const Cluster& cluster, std::span<const BytesPerSecond> memories = {});

  /// A flow over these links and memories, no faster than `bound`, which does not flow before start(). Ids of removed
  /// flows are used again.
  [[nodiscard]] FlowId add(std::span<const LinkId> links, std::span<const MemoryUse> memories = {},
                           BytesPerSecond bound = unbounded);
  void start(FlowId id);
  /// Stops a flow that was started, and forgets it.
  void remove(FlowId id);

  // Without memories:
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
  /// Whether it is a memory that lets the flow be no faster.
  [[nodiscard]] bool limited_by_memory(FlowId flow) const { return flows_[flow].by_memory; }

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
    bool tight = false;
    bool changed = false;  // it is in changed_links_
  };

  struct Memory {
    bool joint = false;      // no leaf
    bool was_joint = false;  // before the flows of now came and went
    bool changed = false;    // it is in changed_memories_
  };

  /// A flow in a memory that is looked at by itself.
  struct Filling {
    double most = 0;  // rate
    double weight = 0;
    FlowId flow = 0;
  };

  struct Flow {
    double rate = 0;
    double bound = unbounded;  // its own, and by FATPIPE links
    double most = unbounded;   // largest_rate()
    std::uint32_t first_hop = 0;
    std::uint32_t hops = 0;
    std::uint64_t solved = 0;  // the solution in which it last was in a component
    bool visited = false;
    bool open = false;
    bool by_memory = false;
  };

  /// The least rate that a link allows its open flows, as it was last computed; it is a lower bound of the present
  /// value.
  struct Share {
    double rate = 0;
    LinkId link = 0;
  };

  [[nodiscard]] std::span<Hop> hops_of(const Flow& flow) { return {hops_.data() + flow.first_hop, flow.hops}; }
  [[nodiscard]] double bound_of(std::span<const LinkId> links) const;
  [[nodiscard]] double weight(std::uint32_t hop) const { return weights_.empty() ? 1 : weights_[hop]; }
  [[nodiscard]] bool is_memory(LinkId id) const { return id >= first_memory_; }
  [[nodiscard]] Memory& memory(LinkId id) { return memories_[id - first_memory_]; }
  [[nodiscard]] bool joins(LinkId id) const {
    return is_memory(id) ? memories_[id - first_memory_].joint : links_[id].tight;
  }
  [[nodiscard]] bool stays_within(const Flow& flow) const {
    return flow.hops == 1 && is_memory(hops_[flow.first_hop].link);
  }
  [[nodiscard]] double largest_rate(const Flow& flow) const;
  [[nodiscard]] bool is_tight(const SharedLink& link) const;
  [[nodiscard]] bool hindered(const Flow& flow) const;
  [[nodiscard]] double level(double left);
  [[nodiscard]] bool is_leaf(LinkId id);
  void share_rest(LinkId id);
  [[nodiscard]] double open_share(LinkId id) const;
  void note_flow(FlowId id);
  void note_change(LinkId id);
  void note_memory(LinkId id);
  void release(LinkId id);
  void solve_component(LinkId id);
  void set_rate(FlowId id, double rate);
  void visit(LinkId id);
  void gather_component(LinkId first);
  void fill_component();
  void fix(FlowId id, double rate, bool by_memory);

  std::vector<SharedLink> links_;  // of the cluster, then the memories
  LinkId first_memory_;
  std::vector<bool> fat_;                  // by link: FATPIPE
  std::vector<Flow> flows_;                // by id
  std::vector<Hop> hops_;                  // a flow's are contiguous
  std::vector<double> weights_;            // of the hops: load per rate of the flow; empty without memories: all 1
  std::vector<double> open_weights_;       // by link, while a component is solved: of its open flows
  std::vector<Memory> memories_;           // by number
  std::vector<std::vector<FlowId>> free_;  // by number of hops: ids whose hops can be used again
  std::vector<FlowId> started_;            // since the last solve
  std::uint64_t solution_ = 0;             // number of the present one
  std::vector<LinkId> changed_links_;
  std::vector<LinkId> changed_memories_;
  std::vector<FlowId> changed_;
  std::vector<Filling> fillings_;
  // The component that is being solved.
  std::vector<LinkId> component_links_;
  std::vector<FlowId> component_flows_;
  std::vector<FlowId> bounded_;
  double least_bound_ = unbounded;
  std::size_t open_flows_ = 0;
  std::vector<Share> shares_;
};

}  // namespace hcclsim::sim
