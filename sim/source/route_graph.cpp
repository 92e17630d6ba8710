#include "sim/source/route_graph.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace hcclsim::sim {

std::uint32_t RouteGraph::vertex_of(std::uint32_t point) {
  const auto [known, is_new] = vertices_.try_emplace(point, static_cast<std::uint32_t>(points_.size()));
  if (is_new) {
    points_.push_back(point);
    edges_.emplace_back();
  }
  return known->second;
}

void RouteGraph::join(std::uint32_t from, std::uint32_t to, std::uint32_t links) {
  if (from == to) return;
  const std::uint32_t first = vertex_of(from);
  const std::uint32_t second = vertex_of(to);
  edges_[first].push_back({second, links});
  edges_[second].push_back({first, links});
}

void RouteGraph::make_core() {
  number_.assign(points_.size(), none);
  for (std::uint32_t vertex = 0; vertex < points_.size(); ++vertex) {
    if (edges_[vertex].size() < 2) continue;
    number_[vertex] = static_cast<std::uint32_t>(core_.size());
    core_.push_back(vertex);
  }
  before_.resize(core_.size());
}

std::vector<std::uint32_t> RouteGraph::way(std::uint32_t from, std::uint32_t to) {
  if (number_.empty()) make_core();
  const auto from_vertex = vertices_.find(from);
  const auto to_vertex = vertices_.find(to);
  if (from_vertex == vertices_.end() || to_vertex == vertices_.end()) return {};  // no route leads there
  const std::uint32_t first = from_vertex->second;
  const std::uint32_t last = to_vertex->second;
  const std::uint32_t begin = attachment(first);
  const std::uint32_t end = attachment(last);
  if (begin == last || end == first) return {to};
  std::vector<std::uint32_t> vertices;
  if (begin != first) vertices.push_back(begin);
  if (begin != end && !append_core_way(begin, end, vertices)) return {};
  if (end != last) vertices.push_back(last);
  for (std::uint32_t& vertex : vertices) vertex = points_[vertex];
  return vertices;
}

bool RouteGraph::append_core_way(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& vertices) {
  constexpr std::size_t most_kept = std::size_t{1} << 26U;  // numbers, a quarter of a GiB
  const std::uint32_t source = number_[from];
  const std::uint32_t destination = number_[to];
  if (source == none || destination == none) return false;
  if (before_[source].empty() && search_ == Search::floyd) search_all();
  if (before_[source].empty()) {
    if (++kept_ * core_.size() > most_kept) {
      before_.assign(core_.size(), {});
      kept_ = 1;
    }
    before_[source] = search_from(source);
  }
  const std::size_t begin = vertices.size();
  for (std::uint32_t at = destination; at != source; at = before_[source][at]) {
    if (at == none) return false;
    vertices.push_back(core_[at]);
  }
  std::reverse(vertices.begin() + static_cast<std::ptrdiff_t>(begin), vertices.end());
  return true;
}

/// As SimGrid does it: of those that are equally far the first one leads on, and what leads there first stays.
std::vector<std::uint32_t> RouteGraph::search_from(std::uint32_t source) const {
  std::vector<std::uint32_t> before(core_.size(), none);
  std::vector<std::uint32_t> distance(core_.size(), none);
  using Reached = std::pair<std::uint32_t, std::uint32_t>;  // distance, number
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> reached;
  distance[source] = 0;
  reached.emplace(0, source);
  while (!reached.empty()) {
    const auto [far, at] = reached.top();
    reached.pop();
    if (far > distance[at]) continue;  // it was reached by a shorter way since
    for (const Edge& edge : edges_[core_[at]]) {
      const std::uint32_t next = number_[edge.to];
      if (next == none || far + edge.links >= distance[next]) continue;
      distance[next] = far + edge.links;
      before[next] = at;
      reached.emplace(distance[next], next);
    }
  }
  return before;
}

/// Floyd's search: through every point in turn, where that is shorter.
void RouteGraph::search_all() {
  const auto size = static_cast<std::uint32_t>(core_.size());
  std::vector<std::vector<std::uint32_t>> distance(size, std::vector<std::uint32_t>(size, none));
  before_.assign(size, std::vector<std::uint32_t>(size, none));
  for (std::uint32_t from = 0; from < size; ++from) {
    for (const Edge& edge : edges_[core_[from]]) {
      if (number_[edge.to] == none) continue;
      distance[from][number_[edge.to]] = edge.links;
      before_[from][number_[edge.to]] = from;
    }
  }
  for (std::uint32_t through = 0; through < size; ++through) {
    for (std::uint32_t from = 0; from < size; ++from) {
      if (distance[from][through] == none || from == through) continue;
      for (std::uint32_t to = 0; to < size; ++to) {
        if (distance[through][to] == none || to == from) continue;
        const std::uint32_t longer = distance[from][through] + distance[through][to];
        if (longer >= distance[from][to]) continue;
        distance[from][to] = longer;
        before_[from][to] = before_[through][to];
      }
    }
  }
}

}  // namespace hcclsim::sim
