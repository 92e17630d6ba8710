#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/strategies/costs/search_cost.hpp"
#include "hccl/strategies/searched_operator.hpp"

/// What dynamic programming, propagation and the exact search choose from: operators with their candidates and what
/// each costs, and edges with what it costs that a candidate of one operator meets a candidate of the next. The cost of
/// a choice is the sum over operators and edges. Graphs come from networks, or from a caller with costs of its own.
///
/// A parameter that several operators have is a node of its own, as MindSpore adds an identity for it: its candidates
/// are the ways to cut it, and only candidates of its users meet them that cut it in the same way.
namespace hcclsim::hccl {

struct CostNode {
  std::string name;
  std::vector<DimensionParts> candidates{};  ///< of a shared parameter: the parts of its axes
  std::vector<SearchCost> costs{};           ///< of each candidate
};

struct CostEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool parameter = false;  ///< from a shared parameter to one of its users
  /// Of candidate i of `from` and j of `to`: at i · candidates of `to` + j; nothing: they must not meet.
  std::vector<std::optional<SearchCost>> costs{};
};

struct CostGraph {
  std::vector<CostNode> nodes;  ///< operators by their numbers, then shared parameters
  std::vector<CostEdge> edges;

  [[nodiscard]] const std::optional<SearchCost>& cost(const CostEdge& edge, std::size_t from, std::size_t to) const {
    return edge.costs[from * nodes[edge.to].candidates.size() + to];
  }
};

/// A candidate of each node.
using Choice = std::vector<std::uint32_t>;

/// Throws Error(bad_input, "search") where candidates must not meet.
[[nodiscard]] SearchCost cost_of(const CostGraph& graph, const Choice& choice);

/// Another cost of a redistribution than MindSpore's: of its steps, of a tensor of a type; whether gradients come back;
/// `memory` is what it keeps by MindSpore's model.
using RedistributionCostOf =
    std::function<SearchCost(const std::vector<RedistributionStep>& steps, DataType type, bool trained, double memory)>;

/// The input of the network is cut by samples over as many devices as divide them. `fixed`: the only candidate of an
/// operator, by its number, where there is one. Throws Error(bad_input, "search") if it cannot be its strategy.
[[nodiscard]] CostGraph make_cost_graph(
    const models::Graph& graph, const SearchOptions& options,
    const std::function<std::optional<DimensionParts>(models::OperatorId)>& fixed = {},
    const RedistributionCostOf& redistribution = {});

}  // namespace hcclsim::hccl
