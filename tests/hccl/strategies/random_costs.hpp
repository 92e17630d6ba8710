#pragma once

#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hccl/strategies/costs/cost_graph.hpp"

/// Graphs of costs without a network, and the best choice by trying them all.
namespace hcclsim::test {

using hccl::Choice;
using hccl::CostEdge;
using hccl::CostGraph;
using hccl::CostNode;
using hccl::SearchCost;
using hccl::SearchOptions;

/// Costs are whole numbers, so that sums do not depend on their order.
class RandomCosts {
 public:
  explicit RandomCosts(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
  }

  SearchCost cost() {
    SearchCost cost;
    cost.computation = below(100);
    cost.forward = below(10);
    cost.communication = cost.forward + below(10);
    cost.partial_communication = cost.communication;
    cost.memory = 1 + below(50);
    return cost;
  }

  CostNode node(std::uint32_t number, std::uint32_t candidates) {
    CostNode node{.name = "op" + std::to_string(number)};
    for (std::uint32_t i = 0; i < candidates; ++i) {
      node.candidates.push_back({i});
      node.costs.push_back(cost());
    }
    return node;
  }

  void add_edge(CostGraph& graph, std::uint32_t from, std::uint32_t to) {
    CostEdge edge{.from = from, .to = to};
    const std::size_t pairs = graph.nodes[from].candidates.size() * graph.nodes[to].candidates.size();
    for (std::size_t i = 0; i < pairs; ++i) edge.costs.emplace_back(cost());
    graph.edges.push_back(std::move(edge));
  }

  CostGraph chain(std::uint32_t nodes, std::uint32_t candidates) {
    CostGraph graph;
    for (std::uint32_t i = 0; i < nodes; ++i) {
      graph.nodes.push_back(node(i, 1 + below(candidates)));
      if (i > 0) add_edge(graph, i - 1, i);
    }
    return graph;
  }

  /// Any two operators may have an edge.
  CostGraph any(std::uint32_t nodes, std::uint32_t candidates, std::uint32_t edges) {
    CostGraph graph;
    for (std::uint32_t i = 0; i < nodes; ++i) graph.nodes.push_back(node(i, 1 + below(candidates)));
    for (std::uint32_t i = 0; i < edges; ++i) {
      const std::uint32_t to = 1 + below(nodes - 1);
      add_edge(graph, below(to), to);
    }
    return graph;
  }

  /// A chain with bypasses that join it again, as the residual branches of a network.
  CostGraph residual(std::uint32_t blocks, std::uint32_t candidates) {
    CostGraph graph;
    graph.nodes.push_back(node(0, candidates));
    for (std::uint32_t block = 0; block < blocks; ++block) {
      const std::uint32_t from = 2 * block;
      graph.nodes.push_back(node(from + 1, candidates));
      graph.nodes.push_back(node(from + 2, candidates));
      add_edge(graph, from, from + 1);
      add_edge(graph, from + 1, from + 2);
      add_edge(graph, from, from + 2);
    }
    return graph;
  }

 private:
  std::mt19937 random_;
};

/// The least objective of all choices whose memory is at most `memory`.
inline std::optional<double> least_of_all(const CostGraph& graph, const SearchOptions& options, double memory) {
  std::optional<double> least;
  Choice choice(graph.nodes.size(), 0);
  const auto next = [&] {
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (++choice[i] < graph.nodes[i].candidates.size()) return true;
      choice[i] = 0;
    }
    return false;
  };
  do {
    const SearchCost cost = hccl::cost_of(graph, choice);
    if (cost.memory > memory) continue;
    const double value = hccl::objective(cost, options);
    if (!least.has_value() || value < *least) least = value;
  } while (next());
  return least;
}

}  // namespace hcclsim::test
