#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/strategies/costs/cost_graph.hpp"

/// Of all choices of candidates the one with the shortest step, where only a simulation tells the step of a choice.
///
/// A choice cannot be shorter than the sum of what its candidates take at least. Choices are built up from the front of
/// the network on, those with the least such bound first, where operators that are not decided count with the least
/// that any candidate of theirs takes. Whole choices whose bound is below the shortest step that is known are
/// simulated. When none is left, that step is proved to be the least. If as many as are allowed were simulated, the
/// bound of the next choice is what no step can be below.
///
/// So that choices are rejected early, and that there is a good one where not all can be simulated, the search begins
/// at the best choice that is known, and changes one operator after the other as long as this shortens the step.
namespace hcclsim::study {

/// The steps of these choices for the operators; infinite for one that does not fit or cannot be.
using StepsOfChoices = std::function<std::vector<Seconds>(const std::vector<hccl::Choice>&)>;

struct ChoiceSpace {
  const hccl::CostGraph& costs;  ///< of which only the memory counts, and which candidates must not meet
  /// Of every candidate of every operator, the first nodes of the graph: a step with several of them takes at least
  /// their sum.
  const std::vector<std::vector<Seconds>>& least;
  double memory = std::numeric_limits<double>::infinity();  ///< most that a choice may need
  std::uint64_t most = 1;                                   ///< choices that are simulated
};

struct KnownChoice {
  hccl::Choice choice;  ///< of the operators
  Seconds step = 0;
};

struct LeastChoice {
  std::optional<KnownChoice> best{};  ///< none: no choice is known whose step is below the limit
  Seconds bound = 0;                  ///< no choice has a shorter step; that of the best, or the limit: this is proved
  std::uint64_t simulated = 0;        ///< choices, with those that were known
};

/// `limit`: a step that is known, whatever gives it; choices that cannot be below it do not matter.
[[nodiscard]] LeastChoice least_choice(const ChoiceSpace& space, const std::vector<KnownChoice>& known, Seconds limit,
                                       const StepsOfChoices& simulate);

}  // namespace hcclsim::study
