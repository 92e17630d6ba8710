#include "sim/network/max_min.hpp"

#include <algorithm>

namespace hcclsim::sim {

MaxMin::MaxMin(const Cluster& cluster) {
  const auto links = cluster.links();
  links_.resize(links.size());
  fat_.resize(links.size());
  for (LinkId id = 0; id < links.size(); ++id) {
    links_[id].capacity = cluster.capacity(id);
    fat_[id] = !links[id].shared;
  }
}

FlowId MaxMin::add(std::span<const LinkId> links) {
  const double bound = bound_of(links);
  std::uint32_t hops = 0;
  for (const LinkId link : links) hops += fat_[link] ? 0 : 1;
  if (free_.size() <= hops) free_.resize(hops + 1);
  FlowId id = 0;
  if (free_[hops].empty()) {
    id = static_cast<FlowId>(flows_.size());
    flows_.push_back({0, bound, static_cast<std::uint32_t>(hops_.size()), hops, false, false});
    hops_.resize(hops_.size() + hops);
  } else {
    id = free_[hops].back();
    free_[hops].pop_back();
    flows_[id].rate = 0;
    flows_[id].bound = bound;
  }
  Hop* hop = hops_.data() + flows_[id].first_hop;
  for (const LinkId link : links) {
    if (!fat_[link]) *hop++ = {link, id, none, none};
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
  }
  started_.push_back(id);
}

void MaxMin::remove(FlowId id) {
  const Flow& flow = flows_[id];
  for (const Hop& hop : hops_of(flow)) {
    SharedLink& link = links_[hop.link];
    (hop.previous == none ? link.first : hops_[hop.previous].next) = hop.next;
    if (hop.next != none) hops_[hop.next].previous = hop.previous;
    if (--link.flows > 0 && !link.changed) {
      link.changed = true;
      changed_links_.push_back(hop.link);
    }
  }
  free_[flow.hops].push_back(id);
}

void MaxMin::set_capacity(LinkId id, BytesPerSecond capacity) {
  SharedLink& link = links_[id];
  if (link.capacity == capacity) return;
  link.capacity = capacity;
  if (link.flows == 0 || link.changed) return;
  link.changed = true;
  changed_links_.push_back(id);
}

void MaxMin::renew(FlowId id, std::span<const LinkId> links, bool held) {
  const double bound = held ? 0 : bound_of(links);
  if (flows_[id].bound == bound) return;
  flows_[id].bound = bound;
  started_.push_back(id);
}

double MaxMin::bound_of(std::span<const LinkId> links) const {
  double bound = unbounded;
  for (const LinkId link : links) {
    if (fat_[link]) bound = std::min(bound, links_[link].capacity);
  }
  return bound;
}

bool MaxMin::alone(const Flow& flow) const {
  for (std::uint32_t at = flow.first_hop; at < flow.first_hop + flow.hops; ++at) {
    if (links_[hops_[at].link].flows > 1) return false;
  }
  return true;
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
    if (alone(flow)) {
      double rate = flow.bound;
      for (const Hop& hop : hops_of(flow)) rate = std::min(rate, links_[hop.link].capacity);
      set_rate(id, rate);
      continue;
    }
    for (const Hop& hop : hops_of(flow)) {
      SharedLink& link = links_[hop.link];
      if (link.changed) continue;
      link.changed = true;
      changed_links_.push_back(hop.link);
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

/// Finds the component of a link: all links and flows that a chain of shared links connects with it; all its flows are
/// open.
void MaxMin::gather_component(LinkId first) {
  component_links_.clear();
  component_flows_.clear();
  bounded_.clear();
  visit(first);
  std::size_t next = 0;
  while (next < component_links_.size()) {  // visit() adds to it
    SharedLink& link = links_[component_links_[next++]];
    link.left = link.capacity;
    link.open = link.flows;
    for (std::uint32_t at = link.first; at != none; at = hops_[at].next) {
      const FlowId id = hops_[at].flow;
      Flow& flow = flows_[id];
      if (flow.visited) continue;
      flow.visited = flow.open = true;
      component_flows_.push_back(id);
      if (flow.bound < unbounded) bounded_.push_back(id);
      for (const Hop& hop : hops_of(flow)) visit(hop.link);
    }
  }
}

/// Gives all flows of the component their rates: again and again the link that allows its open flows least, or the
/// least bound of an open flow if that is lower, fixes the rates that depend on it.
void MaxMin::fill_component() {
  shares_.clear();
  for (const LinkId id : component_links_) {
    if (links_[id].open > 0) shares_.push_back({links_[id].left / links_[id].open, id});
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
    if (link.open > 0 && link.left / link.open > rate) {
      // Flows that other links have fixed since left more to the open ones: the link moves to its new place in the
      // queue.
      std::pop_heap(shares_.begin(), shares_.end(), after);
      shares_.back().rate = link.left / link.open;
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
  flows_[id].open = false;
  set_rate(id, rate);
  for (const Hop& hop : hops_of(flows_[id])) {
    links_[hop.link].left -= rate;
    --links_[hop.link].open;
  }
}

}  // namespace hcclsim::sim
