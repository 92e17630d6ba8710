#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/strategies/costs/cost_graph.hpp"
#include "hccl/strategies/dynamic/cost_list.hpp"
#include "hccl/strategies/dynamic/dynamic_programming.hpp"

/// A graph of costs while rules fold it. Lists of dead operators and edges are empty.
namespace hcclsim::hccl {

class FoldedGraph {
 public:
  FoldedGraph(const CostGraph& graph, const SearchOptions& options);

  /// Applies the first rule that applies; false: none does.
  bool fold();

  /// Operators that are left, in forward order.
  [[nodiscard]] std::vector<std::uint32_t> alive() const;
  /// The operators that are left and reach each other, in order of the first.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> components() const;
  /// What one or two operators that are left, and the edge between them, can cost; throws Error(internal) for more.
  [[nodiscard]] CostList lists_of(const std::vector<std::uint32_t>& component);

  [[nodiscard]] const FoldingCounts& counts() const { return counts_; }
  [[nodiscard]] ChoiceTree& tree() { return tree_; }

 private:
  struct Node {
    bool alive = true;
    std::vector<CostList> lists;      ///< of each candidate
    std::vector<std::uint32_t> into;  ///< edges that are alive
    std::vector<std::uint32_t> out;
  };
  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
    std::vector<CostList> lists;  ///< of candidate i of `from` and j of `to`: at i · candidates of `to` + j
  };

  bool fold_operator();
  bool fold_edges();
  bool merge();
  bool contract();
  bool fold_triangle();
  bool fold_star();

  [[nodiscard]] CostList add(const CostList& a, const CostList& b);
  [[nodiscard]] std::size_t candidates(std::uint32_t node) const { return nodes_[node].lists.size(); }
  /// Where an edge has its costs for two candidates.
  [[nodiscard]] std::size_t place(const Edge& edge, std::size_t from, std::size_t to) const {
    return from * candidates(edge.to) + to;
  }
  [[nodiscard]] const CostList& list(std::uint32_t edge, std::size_t from, std::size_t to) const {
    return edges_[edge].lists[place(edges_[edge], from, to)];
  }
  void remove_edge(std::uint32_t edge);
  void remove_node(std::uint32_t node);
  void add_edge(Edge edge);
  /// What `source` under a candidate and the candidates of `edge`'s end add for the best of them, when the end is
  /// chosen freely; `with_end`: its own costs count too.
  [[nodiscard]] CostList best_end(std::uint32_t edge, std::size_t source_candidate, bool with_end);
  /// Puts a source into the end of its edge `into`; `others`: its other edges, whose ends stay.
  void fold_source(std::uint32_t source, std::uint32_t into, const std::vector<std::uint32_t>& others);

  const SearchOptions& options_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  ChoiceTree tree_;
  FoldingCounts counts_;
};

}  // namespace hcclsim::hccl
