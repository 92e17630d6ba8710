#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/strategies/searched_operator.hpp"

/// Parts of every operator of a network, and how operators that a search has left out follow those that it has decided.
namespace hcclsim::hccl {

struct NetworkStrategies {
  std::vector<DimensionParts> parts;  ///< of every operator
  /// Of linear operators whose sum over devices is put together in parts of the rows: the parts of the output's rows.
  std::vector<std::optional<Cuts>> outputs;
};

/// Gives parts to operators that have none: layouts spread from neighbours that are decided, first those over all
/// devices, then over half of them, and so on; each time from what an operator reads to the operator as long as there
/// is one, then from what reads it. An axis whose cut the operator cannot have stays whole. What nobody reaches cuts
/// its samples over as many devices as divide them.
void follow_neighbours(const models::Graph& graph, const std::vector<SearchedOperator>& operators, Rank devices,
                       std::vector<std::optional<DimensionParts>>& parts);

/// Operators that share a parameter must cut it alike: they take the cuts of the one that cuts it most, of several the
/// one with the smallest slices; one of `settled` goes before them. Of the strategies of the others that do so, the one
/// with the most dimensions as they are, and then the most devices, is taken; if there is none, nobody cuts it.
void share_parameters(const models::Graph& graph, const std::vector<SearchedOperator>& operators, Rank devices,
                      const std::vector<bool>& settled, std::vector<DimensionParts>& parts);

/// Parts of the operators that a user has given a strategy, by name. Throws Error(bad_input, "search") for a name that
/// the network does not have or that is its input's, "strategy" for a strategy that the operator cannot have.
[[nodiscard]] std::vector<std::optional<DimensionParts>> given_parts(const models::Graph& graph,
                                                                     const StrategyMap& given, Rank devices);

/// By the names of operators; not of the input, which has no rule.
[[nodiscard]] StrategyMap strategy_map(const models::Graph& graph, const NetworkStrategies& strategies);

}  // namespace hcclsim::hccl
