#include "hccl/strategies/dynamic/folded_graph.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Of choices without a node: leaves know what they choose, copies in other lists must not say it twice.
CostList without_choice(CostList list) {
  for (ListedCost& entry : list) entry.choice = ChoiceTree::nothing;
  return list;
}

}  // namespace

FoldedGraph::FoldedGraph(const CostGraph& graph, const SearchOptions& options) : options_(options) {
  nodes_.resize(graph.nodes.size());
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    const std::vector<SearchCost>& costs = graph.nodes[node].costs;
    for (std::uint32_t candidate = 0; candidate < costs.size(); ++candidate) {
      nodes_[node].lists.push_back({{costs[candidate], tree_.leaf(node, candidate)}});
    }
  }
  for (const CostEdge& edge : graph.edges) {
    Edge folded{edge.from, edge.to, {}};
    for (const std::optional<SearchCost>& cost : edge.costs) {
      folded.lists.push_back(cost.has_value() ? CostList{{*cost, ChoiceTree::nothing}} : CostList{});
    }
    add_edge(std::move(folded));
  }
}

bool FoldedGraph::fold() {
  return fold_operator() || fold_edges() || merge() || contract() || fold_triangle() || fold_star();
}

CostList FoldedGraph::add(const CostList& a, const CostList& b) {
  counts_.sums += a.size() * b.size();
  return sums(a, b, tree_, options_);
}

void FoldedGraph::add_edge(Edge edge) {
  const auto id = static_cast<std::uint32_t>(edges_.size());
  nodes_[edge.from].out.push_back(id);
  nodes_[edge.to].into.push_back(id);
  edges_.push_back(std::move(edge));
}

void FoldedGraph::remove_edge(std::uint32_t edge) {
  std::erase(nodes_[edges_[edge].from].out, edge);
  std::erase(nodes_[edges_[edge].to].into, edge);
  edges_[edge].lists.clear();
}

void FoldedGraph::remove_node(std::uint32_t node) {
  nodes_[node].alive = false;
  nodes_[node].lists.clear();
}

bool FoldedGraph::fold_operator() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].alive || nodes_[node].into.size() != 1 || nodes_[node].out.size() != 1) continue;
    const std::uint32_t before = nodes_[node].into.front();
    const std::uint32_t behind = nodes_[node].out.front();
    Edge folded{edges_[before].from, edges_[behind].to, {}};
    folded.lists.resize(candidates(folded.from) * candidates(folded.to));
    for (std::size_t i = 0; i < candidates(folded.from); ++i) {
      for (std::size_t o = 0; o < candidates(node); ++o) {
        const CostList half = add(list(before, i, o), nodes_[node].lists[o]);
        for (std::size_t j = 0; j < candidates(folded.to); ++j) {
          append(folded.lists[place(folded, i, j)], add(half, list(behind, o, j)));
        }
      }
    }
    for (CostList& all : folded.lists) simplify(all, options_);
    remove_edge(before);
    remove_edge(behind);
    remove_node(node);
    add_edge(std::move(folded));
    ++counts_.operators;
    return true;
  }
  return false;
}

bool FoldedGraph::fold_edges() {
  for (const Node& node : nodes_) {
    for (std::size_t i = 0; i < node.out.size(); ++i) {
      for (std::size_t k = i + 1; k < node.out.size(); ++k) {
        const std::uint32_t first = node.out[i];
        const std::uint32_t second = node.out[k];
        if (edges_[first].to != edges_[second].to) continue;
        for (std::size_t at = 0; at < edges_[first].lists.size(); ++at) {
          edges_[first].lists[at] = add(edges_[first].lists[at], edges_[second].lists[at]);
        }
        remove_edge(second);
        ++counts_.edges;
        return true;
      }
    }
  }
  return false;
}

void FoldedGraph::fold_source(std::uint32_t source, std::uint32_t into, const std::vector<std::uint32_t>& others) {
  const std::uint32_t target = edges_[into].to;
  std::vector<CostList> halves;
  for (std::size_t o = 0; o < candidates(source); ++o) {
    CostList half = nodes_[source].lists[o];
    for (const std::uint32_t other : others) {
      half = add(half, best_end(other, o, options_.triangle_star_strategy_overwrite));
    }
    halves.push_back(std::move(half));
  }
  for (std::size_t t = 0; t < candidates(target); ++t) {
    CostList all;
    for (std::size_t o = 0; o < halves.size(); ++o) append(all, add(halves[o], list(into, o, t)));
    simplify(all, options_);
    nodes_[target].lists[t] = add(all, nodes_[target].lists[t]);
  }
  for (const std::uint32_t other : others) remove_edge(other);
  remove_edge(into);
  remove_node(source);
}

CostList FoldedGraph::best_end(std::uint32_t edge, std::size_t source_candidate, bool with_end) {
  const std::uint32_t end = edges_[edge].to;
  CostList all;
  for (std::size_t r = 0; r < candidates(end); ++r) {
    const CostList& met = list(edge, source_candidate, r);
    append(all, with_end ? add(met, without_choice(nodes_[end].lists[r])) : met);
  }
  simplify(all, options_);
  return all;
}

bool FoldedGraph::merge() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].alive || !nodes_[node].into.empty() || nodes_[node].out.size() != 1) continue;
    fold_source(node, nodes_[node].out.front(), {});
    ++counts_.merges;
    return true;
  }
  return false;
}

bool FoldedGraph::contract() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].alive || nodes_[node].into.size() != 1 || !nodes_[node].out.empty()) continue;
    const std::uint32_t edge = nodes_[node].into.front();
    const std::uint32_t target = edges_[edge].from;
    for (std::size_t t = 0; t < candidates(target); ++t) {
      CostList all;
      for (std::size_t o = 0; o < candidates(node); ++o) append(all, add(list(edge, t, o), nodes_[node].lists[o]));
      simplify(all, options_);
      nodes_[target].lists[t] = add(nodes_[target].lists[t], all);
    }
    remove_edge(edge);
    remove_node(node);
    ++counts_.contractions;
    return true;
  }
  return false;
}

bool FoldedGraph::fold_triangle() {
  const auto leads_to = [&](std::uint32_t from, std::uint32_t to) {
    return std::any_of(nodes_[from].out.begin(), nodes_[from].out.end(),
                       [&](std::uint32_t edge) { return edges_[edge].to == to; });
  };
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].alive || !nodes_[node].into.empty() || nodes_[node].out.size() != 2) continue;
    const std::uint32_t first = nodes_[node].out[0];
    const std::uint32_t second = nodes_[node].out[1];
    const bool forwards = leads_to(edges_[first].to, edges_[second].to);
    if (!forwards && !leads_to(edges_[second].to, edges_[first].to)) continue;
    fold_source(node, forwards ? first : second, {forwards ? second : first});
    ++counts_.triangles;
    return true;
  }
  return false;
}

bool FoldedGraph::fold_star() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].alive || !nodes_[node].into.empty() || nodes_[node].out.size() < 2) continue;
    const std::vector<std::uint32_t> out = nodes_[node].out;
    fold_source(node, out.front(), {out.begin() + 1, out.end()});
    ++counts_.stars;
    return true;
  }
  return false;
}

std::vector<std::uint32_t> FoldedGraph::alive() const {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].alive) ids.push_back(node);
  }
  return ids;
}

std::vector<std::vector<std::uint32_t>> FoldedGraph::components() const {
  std::map<std::uint32_t, std::uint32_t> head;  // of each operator that is left: the first that it reaches
  const auto find = [&](std::uint32_t node) {
    while (head.at(node) != node) node = head.at(node);
    return node;
  };
  for (const std::uint32_t node : alive()) head[node] = node;
  for (const std::uint32_t node : alive()) {
    for (const std::uint32_t edge : nodes_[node].out) {
      const auto [low, high] = std::minmax(find(node), find(edges_[edge].to));
      head[high] = low;
    }
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (const std::uint32_t node : alive()) members[find(node)].push_back(node);
  std::vector<std::vector<std::uint32_t>> found;
  for (auto& [first, ids] : members) found.push_back(std::move(ids));
  return found;
}

CostList FoldedGraph::lists_of(const std::vector<std::uint32_t>& component) {
  CostList all;
  if (component.size() == 1) {
    for (const CostList& costs : nodes_[component.front()].lists) append(all, costs);
  } else if (component.size() == 2) {
    const std::uint32_t source = nodes_[component[0]].out.empty() ? component[1] : component[0];
    const std::uint32_t edge = nodes_[source].out.front();
    const std::uint32_t sink = edges_[edge].to;
    for (std::size_t i = 0; i < candidates(source); ++i) {
      for (std::size_t j = 0; j < candidates(sink); ++j) {
        append(all, add(add(nodes_[source].lists[i], list(edge, i, j)), nodes_[sink].lists[j]));
      }
    }
  } else {
    internal_error("{} operators are left together", component.size());
  }
  simplify(all, options_);
  return all;
}

}  // namespace hcclsim::hccl
