#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hccl/strategies/costs/cost_graph.hpp"
#include "hccl/strategies/strategies.hpp"

/// MindSpore's propagation: strategies that a user gives to a few operators spread to all others. From every operator
/// that has one, in order of their names, a breadth-first walk goes to its neighbours, those behind it first. A
/// neighbour without a strategy takes, among its candidates, one that needs no communication on the edge to it; of
/// several the one with the least computation there, then the least forward communication of its own, then the first.
/// If there is none, the one with the least communication is taken, with a warning. Operators that nobody reaches take
/// their first candidate.
///
/// A walk goes through shared parameters too; a last pass makes their users agree, those with a strategy of the user
/// first. (MindSpore r2.3, frontend/parallel/auto_parallel: graph_costmodel.)
namespace hcclsim::hccl {

struct PropagationResult {
  NetworkStrategies strategies;
  std::vector<std::string> warnings;
  std::uint64_t candidates = 0;  ///< that were compared
};

/// `given`: strategies of operators by name. Throws Error(bad_input, "search") without one, for a name that the network
/// does not have, for cuts that the searches do not make, and where given strategies cut a shared parameter
/// differently; "strategy" for one that the operator cannot have.
[[nodiscard]] PropagationResult sharding_propagation(const models::Graph& graph, const StrategyMap& given,
                                                     const SearchOptions& options);

/// The same on a graph of costs: `given` has the candidate of nodes that are settled.
struct Propagated {
  Choice choice;
  std::vector<std::string> warnings;
  std::uint64_t candidates = 0;
};
[[nodiscard]] Propagated propagate(const CostGraph& graph, const std::vector<std::optional<std::uint32_t>>& given);

}  // namespace hcclsim::hccl
