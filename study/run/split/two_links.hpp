#pragma once

#include <cstdint>
#include <vector>

#include "study/run/split/bound.hpp"
#include "study/run/split/problem.hpp"

/// Two communication streams on links of their own: two machines. The order stays that of production, each segment goes
/// to one of them.
///
/// The best assignment is NP-hard in general (PARTITION, where all gradients are ready at once), but few states matter:
/// after the first b gradients, a pair of ends (f1, f2) matters only if no other pair of as few segments is as early on
/// both streams. An end before the next gradient is ready counts as its date, since nothing can begin before; streams
/// of one cost are the same either way round; and a state matters only if what is left, divided freely between the
/// links, could end by the best end found so far. Where too many states are left, only the most promising are followed:
/// the best split found and a bound then bracket the optimum.
namespace hcclsim::study {

struct TwoLinkSplit {
  Cuts cuts;
  std::vector<std::uint8_t> streams;  ///< 0 or 1, of each segment
  Seconds finish = 0;
  Seconds bound = 0;   ///< nothing ends earlier; `finish` if that is the optimum
  bool exact = false;  ///< it is
};

/// The earliest end on two streams with these costs, with up to `most_segments` segments on both together; of equal
/// ends the fewest. O(n² · most_segments · number of states that are followed).
[[nodiscard]] TwoLinkSplit best_split_on_two_links(const SplitProblem& problem, const SampledCost& first,
                                                   const SampledCost& second, std::uint32_t most_segments);

/// What no division of the gradients between two links with these costs can beat.
[[nodiscard]] Seconds bound_on_two_links(const SplitProblem& problem, const SampledCost& first,
                                         const SampledCost& second);

}  // namespace hcclsim::study
