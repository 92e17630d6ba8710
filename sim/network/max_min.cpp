#include "sim/network/max_min.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::sim {

MaxMin::MaxMin(const Cluster& cluster, std::span<const BytesPerSecond> memories)
    : first_memory_(static_cast<LinkId>(cluster.links().size())) {
  const auto links = cluster.links();
  links_.resize(links.size() + memories.size());
  fat_.resize(links_.size());
  memories_.resize(memories.size());
  if (!memories.empty()) open_weights_.resize(links_.size());
  for (LinkId id = 0; id < links.size(); ++id) {
    links_[id].capacity = cluster.capacity(id);
    fat_[id] = !links[id].shared;
  }
  for (std::size_t memory = 0; memory < memories.size(); ++memory) {
    links_[links.size() + memory].capacity = memories[memory];
  }
}

FlowId MaxMin::add(std::span<const LinkId> links, std::span<const MemoryUse> memories, BytesPerSecond bound) {
  bound = std::min(bound, bound_of(links));
  auto hops = static_cast<std::uint32_t>(memories.size());
  for (const LinkId link : links) hops += fat_[link] ? 0 : 1;
  if (free_.size() <= hops) free_.resize(hops + 1);
  FlowId id = 0;
  if (free_[hops].empty()) {
    id = static_cast<FlowId>(flows_.size());
    flows_.push_back({0, bound, bound, static_cast<std::uint32_t>(hops_.size()), hops});
    hops_.resize(hops_.size() + hops);
    if (!memories_.empty()) weights_.resize(hops_.size(), 1);
  } else {
    id = free_[hops].back();
    free_[hops].pop_back();
    flows_[id].rate = 0;
    flows_[id].bound = bound;
  }
  std::uint32_t hop = flows_[id].first_hop;
  for (const LinkId link : links) {
    if (!fat_[link]) hops_[hop++] = {link, id, none, none};
  }
  if (!memories_.empty()) std::fill_n(weights_.begin() + flows_[id].first_hop, hops, 1);
  for (const MemoryUse& use : memories) {
    weights_[hop] = use.times;
    hops_[hop++] = {first_memory_ + use.memory, id, none, none};
  }
  return id;
}

void MaxMin::start(FlowId id) {
  const Flow& flow = flows_[id];
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    Hop& hop = hops_[at];
    SharedLink& link = links_[hop.link];
    hop.next = link.first;
    if (link.first != none) hops_[link.first].previous = at;
    link.first = at;
    ++link.flows;
    if (is_memory(hop.link)) note_memory(hop.link);
  }
  note_flow(id);
}

void MaxMin::remove(FlowId id) {
  const Flow& flow = flows_[id];
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    const Hop& hop = hops_[at];
    SharedLink& link = links_[hop.link];
    (hop.previous == none ? link.first : hops_[hop.previous].next) = hop.next;
    if (hop.next != none) hops_[hop.next].previous = hop.previous;
    --link.flows;
    if (is_memory(hop.link)) {
      note_memory(hop.link);
    } else if (link.flows > 0) {
      note_change(hop.link);
    } else {
      link.tight = false;
    }
  }
  free_[flow.hops].push_back(id);
}

void MaxMin::set_capacity(LinkId id, BytesPerSecond capacity) {
  SharedLink& link = links_[id];
  if (link.capacity == capacity) return;
  link.capacity = capacity;
  for (std::uint32_t at = link.first; at != none; at = hops_[at].next) note_flow(hops_[at].flow);
}

void MaxMin::renew(FlowId id, std::span<const LinkId> links, bool held) {
  const double bound = held ? 0 : bound_of(links);
  if (flows_[id].bound == bound) return;
  flows_[id].bound = bound;
  note_flow(id);
}

double MaxMin::bound_of(std::span<const LinkId> links) const {
  double bound = unbounded;
  for (const LinkId link : links) {
    if (fat_[link]) bound = std::min(bound, links_[link].capacity);
  }
  return bound;
}

/// Of a flow that has started, or whose largest rate may be another one now.
void MaxMin::note_flow(FlowId id) {
  Flow& flow = flows_[id];
  flow.most = largest_rate(flow);
  started_.push_back(id);
  for (const Hop& hop : hops_of(flow)) {
    if (!is_memory(hop.link)) note_change(hop.link);
  }
}

void MaxMin::note_change(LinkId id) {
  if (links_[id].changed) return;
  links_[id].changed = true;
  changed_links_.push_back(id);
}

void MaxMin::note_memory(LinkId id) {
  Memory& noted = memory(id);
  if (noted.changed) return;
  noted.changed = true;
  noted.was_joint = noted.joint;
  changed_memories_.push_back(id);
}

/// Of a flow that only its bound and idle links limit.
double MaxMin::largest_rate(const Flow& flow) const {
  double rate = flow.bound;
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    if (!is_memory(hops_[at].link)) rate = std::min(rate, links_[hops_[at].link].capacity);
  }
  return rate;
}

/// Whether the flows of a link, each as fast as all else lets it be, are more than it carries.
bool MaxMin::is_tight(const SharedLink& link) const {
  if (link.flows < 2) return false;
  double sum = 0;
  for (std::uint32_t at = link.first; at != none; at = hops_[at].next) sum += flows_[hops_[at].flow].most;
  return sum > link.capacity;
}

/// Whether another flow may be in the way, or a memory.
bool MaxMin::hindered(const Flow& flow) const {
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    const LinkId link = hops_[at].link;
    if (joins(link)) return true;
  }
  return false;
}

/// The rate up to which flows with these bounds are raised together until nothing of `left` is left; infinite if that
/// is enough for all. Puts the flows into the order of their bounds.
double MaxMin::level(double left) {
  std::sort(fillings_.begin(), fillings_.end(),
            [](const Filling& a, const Filling& b) { return a.most != b.most ? a.most < b.most : a.flow < b.flow; });
  double weight = 0;
  for (const Filling& filling : fillings_) weight += filling.weight;
  for (const Filling& filling : fillings_) {
    if (left / weight < filling.most) return left / weight;
    left -= filling.weight * filling.most;
    weight -= filling.weight;
  }
  return unbounded;
}

/// Whether a memory limits none of the flows that pass on, whatever else there is.
bool MaxMin::is_leaf(LinkId id) {
  fillings_.clear();
  double passing = 0;  // the fastest of these flows
  for (std::uint32_t at = links_[id].first; at != none; at = hops_[at].next) {
    const Flow& flow = flows_[hops_[at].flow];
    fillings_.push_back({flow.most, weight(at), hops_[at].flow});
    if (!stays_within(flow)) passing = std::max(passing, fillings_.back().most);
  }
  return passing <= level(links_[id].capacity);
}

/// What the flows that pass on leave of a leaf is for those that stay within.
void MaxMin::share_rest(LinkId id) {
  fillings_.clear();
  double left = links_[id].capacity;
  for (std::uint32_t at = links_[id].first; at != none; at = hops_[at].next) {
    const Flow& flow = flows_[hops_[at].flow];
    if (stays_within(flow)) {
      fillings_.push_back({flow.bound, weight(at), hops_[at].flow});
    } else {
      left -= weight(at) * flow.rate;
    }
  }
  const double most = level(left);
  for (const Filling& filling : fillings_) set_rate(filling.flow, std::min(filling.most, most));
}

void MaxMin::set_rate(FlowId id, double rate) {
  Flow& flow = flows_[id];
  if (flow.rate == rate) return;
  flow.rate = rate;
  changed_.push_back(id);
  if (memories_.empty() || stays_within(flow)) return;
  for (const Hop& hop : hops_of(flow)) {
    if (is_memory(hop.link) && !joins(hop.link)) note_memory(hop.link);
  }
}

std::span<const FlowId> MaxMin::solve() {
  changed_.clear();
  ++solution_;
  for (const LinkId id : changed_memories_) memory(id).joint = !is_leaf(id);
  for (const LinkId id : changed_links_) {
    SharedLink& link = links_[id];
    const bool tight = is_tight(link);
    link.changed = tight || link.tight;
    link.tight = tight;
  }
  for (const FlowId id : started_) {
    const Flow& flow = flows_[id];
    if (hindered(flow)) continue;
    flows_[id].by_memory = false;
    if (!stays_within(flow)) set_rate(id, flow.most);
  }
  started_.clear();
  for (const LinkId id : changed_links_) {
    if (!links_[id].changed) continue;  // it limits nobody, or was solved with an earlier one
    if (links_[id].tight) {
      solve_component(id);
    } else {
      release(id);
    }
  }
  changed_links_.clear();
  // Those of a memory that was no leaf are to be solved once more without it.
  // NOLINTNEXTLINE(modernize-loop-convert): solutions add leaves to the list
  for (std::size_t i = 0; i < changed_memories_.size(); ++i) {
    const Memory& changed = memory(changed_memories_[i]);
    if (changed.joint || changed.was_joint) solve_component(changed_memories_[i]);
  }
  for (const LinkId id : changed_memories_) {
    if (!memory(id).joint) share_rest(id);
    memory(id).changed = false;
  }
  changed_memories_.clear();
  return changed_;
}

/// Solves what the flows of a link that was tight now depend on.
void MaxMin::release(LinkId id) {
  links_[id].changed = false;
  for (std::uint32_t at = links_[id].first; at != none; at = hops_[at].next) {
    const FlowId number = hops_[at].flow;
    Flow& flow = flows_[number];
    if (flow.solved == solution_) continue;
    const auto hops = hops_of(flow);
    const auto hop = std::find_if(hops.begin(), hops.end(), [&](const Hop& on) { return joins(on.link); });
    if (hop != hops.end()) {
      solve_component(hop->link);
    } else {
      flow.by_memory = false;
      set_rate(number, flow.most);
    }
  }
}

void MaxMin::solve_component(LinkId first) {
  gather_component(first);
  fill_component();
}

/// Takes a link into the component, unless it is there.
void MaxMin::visit(LinkId id) {
  SharedLink& link = links_[id];
  if (link.visited) return;
  link.visited = true;
  component_links_.push_back(id);
}

/// Finds the component of a link: all links and flows that a chain of tight links and memories that are no leaves
/// connects with it; all its flows are open.
void MaxMin::gather_component(LinkId first) {
  component_links_.clear();
  component_flows_.clear();
  bounded_.clear();
  least_bound_ = unbounded;
  visit(first);
  std::size_t next = 0;
  while (next < component_links_.size()) {  // visit() adds to it
    const LinkId number = component_links_[next++];
    SharedLink& link = links_[number];
    link.left = link.capacity;
    link.open = link.flows;
    if (!open_weights_.empty()) open_weights_[number] = 0;
    for (std::uint32_t at = link.first; at != none; at = hops_[at].next) {
      if (!open_weights_.empty()) open_weights_[number] += weight(at);
      const FlowId id = hops_[at].flow;
      Flow& flow = flows_[id];
      if (flow.visited) continue;
      flow.visited = flow.open = true;
      flow.solved = solution_;
      component_flows_.push_back(id);
      if (flow.most < unbounded) bounded_.push_back(id);
      least_bound_ = std::min(least_bound_, flow.most);
      for (const Hop& hop : hops_of(flow)) {
        if (joins(hop.link)) visit(hop.link);
      }
    }
  }
}

/// The rate that a link allows its open flows, of which there are some.
double MaxMin::open_share(LinkId id) const {
  return links_[id].left / (open_weights_.empty() ? links_[id].open : open_weights_[id]);
}

/// Gives all flows of the component their rates: again and again the link that allows its open flows least, or the
/// least bound of an open flow if that is lower, fixes the rates that depend on it.
void MaxMin::fill_component() {
  shares_.clear();
  for (const LinkId id : component_links_) {
    if (links_[id].open > 0) shares_.push_back({open_share(id), id});
  }
  // The least share is on top; among equal ones the order is that of the numbers, for equal results everywhere.
  const auto after = [](const Share& a, const Share& b) {
    return a.rate != b.rate ? a.rate > b.rate : a.link > b.link;
  };
  std::make_heap(shares_.begin(), shares_.end(), after);
  // Bounds seldom are what limits a flow; they are put in order once one does.
  const auto bound_after = [&](FlowId a, FlowId b) {
    return flows_[a].most != flows_[b].most ? flows_[a].most > flows_[b].most : a > b;
  };
  bool ordered = false;
  open_flows_ = component_flows_.size();
  while (open_flows_ > 0) {
    const auto [rate, id] = shares_.empty() ? Share{unbounded, 0} : shares_.front();
    const SharedLink& link = links_[id];
    if (!shares_.empty() && link.open > 0 && open_share(id) > rate) {
      // Flows that other links have fixed since left more to the open ones: the link moves to its new place in the
      // queue.
      std::pop_heap(shares_.begin(), shares_.end(), after);
      shares_.back().rate = open_share(id);
      std::push_heap(shares_.begin(), shares_.end(), after);
      continue;
    }
    if (least_bound_ <= rate && (shares_.empty() || link.open > 0)) {
      if (!std::exchange(ordered, true)) std::make_heap(bounded_.begin(), bounded_.end(), bound_after);
      const FlowId flow = bounded_.front();
      if (flows_[flow].open) fix(flow, flows_[flow].most, false);
      std::pop_heap(bounded_.begin(), bounded_.end(), bound_after);
      bounded_.pop_back();
      least_bound_ = bounded_.empty() ? unbounded : flows_[bounded_.front()].most;
      continue;
    }
    std::pop_heap(shares_.begin(), shares_.end(), after);
    shares_.pop_back();
    for (std::uint32_t at = link.first; link.open > 0; at = hops_[at].next) {
      if (flows_[hops_[at].flow].open) fix(hops_[at].flow, rate, is_memory(id));
    }
  }
  for (const LinkId id : component_links_) links_[id].visited = links_[id].changed = false;
  for (const FlowId id : component_flows_) flows_[id].visited = false;
}

void MaxMin::fix(FlowId id, double rate, bool by_memory) {
  Flow& flow = flows_[id];
  flow.by_memory = by_memory;
  flow.open = false;
  --open_flows_;
  set_rate(id, rate);
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    SharedLink& link = links_[hops_[at].link];
    link.left -= weight(at) * rate;
    --link.open;
    if (!open_weights_.empty()) open_weights_[hops_[at].link] -= weight(at);
  }
}

}  // namespace hcclsim::sim
