#include "sim/network/max_min.hpp"

#include <algorithm>

namespace hcclsim::sim {

MaxMin::MaxMin(const Cluster& cluster, BytesPerSecond memory)
    : first_memory_(static_cast<LinkId>(cluster.links().size())) {
  const auto links = cluster.links();
  const std::size_t memories = memory > 0 ? cluster.size() : 0;
  links_.resize(links.size() + memories);
  fat_.resize(links_.size());
  wanted_.resize(memories);
  if (memories > 0) open_weights_.resize(links_.size());
  for (LinkId id = 0; id < links.size(); ++id) {
    links_[id].capacity = cluster.capacity(id);
    fat_[id] = !links[id].shared;
  }
  for (std::size_t id = links.size(); id < links_.size(); ++id) links_[id].capacity = memory;
}

FlowId MaxMin::add(std::span<const LinkId> links, std::span<const MemoryUse> memories, BytesPerSecond bound) {
  auto hops = static_cast<std::uint32_t>(memories.size());
  for (const LinkId link : links) {
    if (fat_[link]) {
      bound = std::min(bound, links_[link].capacity);
    } else {
      ++hops;
    }
  }
  if (free_.size() <= hops) free_.resize(hops + 1);
  FlowId id = 0;
  if (free_[hops].empty()) {
    id = static_cast<FlowId>(flows_.size());
    flows_.push_back({0, bound, static_cast<std::uint32_t>(hops_.size()), hops, false, false});
    hops_.resize(hops_.size() + hops);
    if (!wanted_.empty()) weights_.resize(hops_.size(), 1);
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
  if (!wanted_.empty()) std::fill_n(weights_.begin() + flows_[id].first_hop, hops, 1);
  for (const MemoryUse& use : memories) {
    weights_[hop] = use.times;
    hops_[hop++] = {first_memory_ + use.npu, id, none, none};
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
    if (is_memory(hop.link)) wanted_[hop.link - first_memory_] += wanted_of(flow, at);
  }
  started_.push_back(id);
}

void MaxMin::remove(FlowId id) {
  const Flow& flow = flows_[id];
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    const Hop& hop = hops_[at];
    SharedLink& link = links_[hop.link];
    (hop.previous == none ? link.first : hops_[hop.previous].next) = hop.next;
    if (hop.next != none) hops_[hop.next].previous = hop.previous;
    const bool shared = --link.flows > 0;
    if (shared && !never_full(hop.link)) note_change(hop.link);
    if (!is_memory(hop.link)) continue;
    double& wanted = wanted_[hop.link - first_memory_];
    wanted = shared ? wanted - wanted_of(flow, at) : 0;
  }
  free_[flow.hops].push_back(id);
}

void MaxMin::note_change(LinkId id) {
  if (links_[id].changed) return;
  links_[id].changed = true;
  changed_links_.push_back(id);
}

/// The load of a memory if nothing but links and its bound limit the flow: then these also do where the memory takes no
/// part. One that could fill it twice is as good as any that could.
double MaxMin::wanted_of(const Flow& flow, std::uint32_t hop) const {
  double rate = flow.bound;
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    if (!is_memory(hops_[at].link)) rate = std::min(rate, links_[hops_[at].link].capacity);
  }
  return std::min(weight(hop) * rate, 2 * links_[hops_[hop].link].capacity);
}

/// The rate of a flow that no other one is in the way of.
double MaxMin::alone_rate(const Flow& flow) const {
  double rate = flow.bound;
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    rate = std::min(rate, links_[hops_[at].link].capacity / weight(at));
  }
  return rate;
}

/// True of a memory whose flows together cannot fill it.
bool MaxMin::never_full(LinkId id) const { return is_memory(id) && wanted_[id - first_memory_] <= links_[id].capacity; }

/// Whether another flow may be in the way.
bool MaxMin::hindered(const Flow& flow) const {
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    if (links_[hops_[at].link].flows > 1 && !never_full(hops_[at].link)) return true;
  }
  return false;
}

void MaxMin::set_rate(FlowId id, double rate) {
  if (flows_[id].rate == rate) return;
  flows_[id].rate = rate;
  changed_.push_back(id);
}

std::span<const FlowId> MaxMin::solve() {
  changed_.clear();
  for (const FlowId id : started_) {
    const Flow& flow = flows_[id];
    if (!hindered(flow)) {
      set_rate(id, alone_rate(flow));
      continue;
    }
    for (const Hop& hop : hops_of(flow)) {
      if (!never_full(hop.link)) note_change(hop.link);
    }
  }
  started_.clear();
  for (const LinkId id : changed_links_) {
    if (!links_[id].changed) continue;  // solved with the component of an earlier one
    gather_component(id);
    fill_component();
  }
  changed_links_.clear();
  return changed_;
}

/// Takes a link into the component, unless it is there.
void MaxMin::visit(LinkId id) {
  SharedLink& link = links_[id];
  if (link.visited) return;
  link.visited = true;
  component_links_.push_back(id);
}

/// Finds the component of a link: all links and flows that a chain of links which may be full connects with it; all its
/// flows are open.
void MaxMin::gather_component(LinkId first) {
  component_links_.clear();
  component_flows_.clear();
  bounded_.clear();
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
      component_flows_.push_back(id);
      if (flow.bound < unbounded) bounded_.push_back(id);
      for (const Hop& hop : hops_of(flow)) {
        if (!never_full(hop.link)) visit(hop.link);
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
  std::sort(bounded_.begin(), bounded_.end(), [&](FlowId a, FlowId b) {
    return flows_[a].bound != flows_[b].bound ? flows_[a].bound < flows_[b].bound : a < b;
  });
  auto bounded = bounded_.begin();
  while (!shares_.empty()) {
    const auto [rate, id] = shares_.front();
    const SharedLink& link = links_[id];
    while (bounded != bounded_.end() && !flows_[*bounded].open) ++bounded;
    if (link.open > 0 && open_share(id) > rate) {
      // Flows that other links have fixed since left more to the open ones: the link moves to its new place in the
      // queue.
      std::pop_heap(shares_.begin(), shares_.end(), after);
      shares_.back().rate = open_share(id);
      std::push_heap(shares_.begin(), shares_.end(), after);
    } else if (link.open > 0 && bounded != bounded_.end() && flows_[*bounded].bound <= rate) {
      fix(*bounded, flows_[*bounded].bound);
    } else {
      std::pop_heap(shares_.begin(), shares_.end(), after);
      shares_.pop_back();
      for (std::uint32_t at = link.first; at != none; at = hops_[at].next) {
        if (flows_[hops_[at].flow].open) fix(hops_[at].flow, rate);
      }
    }
  }
  for (const LinkId id : component_links_) links_[id].visited = links_[id].changed = false;
  for (const FlowId id : component_flows_) flows_[id].visited = false;
}

void MaxMin::fix(FlowId id, double rate) {
  Flow& flow = flows_[id];
  flow.open = false;
  set_rate(id, rate);
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    SharedLink& link = links_[hops_[at].link];
    link.left -= weight(at) * rate;
    --link.open;
    if (!open_weights_.empty()) open_weights_[hops_[at].link] -= weight(at);
  }
}

}  // namespace hcclsim::sim
