#pragma once

#include <cstdint>

#include "hccl/strategies/costs/cost_graph.hpp"

/// MindSpore's search by dynamic programming. The graph is folded: a rule that applies takes an operator or an edge out
/// of it and writes what it costs, for every choice, into lists of what remains. The rules, the first that applies
/// again and again:
///
/// 1. operator: u → o → w becomes one edge;
/// 2. edge: parallel edges become one;
/// 3. merge: a source with one successor goes into it;
/// 4. contract: a sink with one predecessor goes into it;
/// 5. triangle: a source o of l and r, where l → r, goes into l;
/// 6. star: a source of several operators goes into the first one.
///
/// Lists are fronts of computation against communication, so the result is the best one where 1 to 4 suffice: chains
/// and what branches and joins again. 5 and 6 keep only what is best for one of the operators: another one may then
/// decide otherwise. The limit of memory is looked at in the end, when choices that need less may have been dropped.
/// (MindSpore r2.3, frontend/parallel/auto_parallel: dp_algo_costmodel, graph_costmodel.)
namespace hcclsim::hccl {

struct FoldingCounts {
  std::uint32_t operators = 0;
  std::uint32_t edges = 0;
  std::uint32_t merges = 0;
  std::uint32_t contractions = 0;
  std::uint32_t triangles = 0;
  std::uint32_t stars = 0;
  std::uint64_t sums = 0;  ///< of costs that were looked at

  bool operator==(const FoldingCounts&) const = default;
};

struct DynamicProgrammingResult {
  Choice choice;
  /// Of the lists; the cost of the choice is another one where operators of a triangle or star have decided otherwise.
  SearchCost listed;
  FoldingCounts folded;
};

/// Throws Error(bad_input, "search") when no choice fits into the memory, and when a network that is only applied
/// leaves more than one operator, for which MindSpore has no rule.
[[nodiscard]] DynamicProgrammingResult dynamic_programming(const CostGraph& graph, const SearchOptions& options);

}  // namespace hcclsim::hccl
