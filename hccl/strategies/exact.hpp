#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "hccl/strategies/costs/cost_graph.hpp"

/// The best choice there is, as a judge of the searches. Operators are decided in forward order; what is behind does
/// not depend on what is before but for the candidates of operators with an edge over the border. So of all choices
/// that have those alike only the best is kept, or, when memory is limited, those that no other one beats in cost and
/// in memory. Chains and networks whose branches join again have narrow borders.
///
/// A bound is proven with the result: where a border is wider than is allowed, the choices with the least hope are
/// dropped, and what the best of them could have come to, with the least that each operator and edge behind can cost,
/// is remembered.
namespace hcclsim::hccl {

struct ExactOptions {
  double memory = std::numeric_limits<double>::infinity();  ///< most that the costs may need
  std::uint64_t width = 1U << 16U;                          ///< partial choices that are kept at a border, at least 1
};

struct ExactResult {
  Choice choice;
  double cost = 0;
  double memory = 0;
  double bound = 0;            ///< no choice that fits costs less
  std::uint64_t examined = 0;  ///< partial choices

  /// Whether there is none better.
  [[nodiscard]] bool is_best() const { return cost <= bound; }
};

/// What a cost counts for: objective() of a search's own cost, or seconds that somebody has simulated.
using ScalarCost = std::function<double(const SearchCost&)>;

/// Costs must not be negative. Throws Error(bad_input, "search") when no choice fits into the memory, or none that is
/// kept does.
[[nodiscard]] ExactResult exact_search(const CostGraph& graph, const ScalarCost& count, const ExactOptions& options);

}  // namespace hcclsim::hccl
