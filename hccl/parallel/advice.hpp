#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/segment.hpp"

/// The tuning rules of the vendor's split guide ("Adjusting the Gradient Splitting Strategy"): the first allreduce is
/// to end within forward and backward, the last one is to be short. From a step in which allreduces ran beside forward
/// and backward, advise_split() says which of the guide's three scenarios it shows and which percentages are worth a
/// trial. Trials are chosen by an estimate, an allreduce as a start-up time and bytes over a bandwidth, that is never
/// shown: whoever prints a trial's time simulates it first.
namespace hcclsim::hccl {

enum class SplitScenario : int {
  well_split = 0,     ///< none: the estimate finds nothing better, or what delays allreduces is not the split
  cut_later = 1,      ///< AR1 is hidden and the last allreduce is long: move the cut backward, shorten the last one
  cut_earlier = 2,    ///< AR1 ends after the backward pass: move the cut forward, hide AR1
  more_segments = 3,  ///< one cut cannot do: more segments within forward and backward
};

/// An allreduce as it ran. Dates are seconds since fp_start.
struct SegmentTimes {
  Segment segment;
  Bytes bytes = 0;
  Seconds start = 0;
  Seconds end = 0;
  bool waited = false;  ///< most of its time it waited for a rank that was late
};

/// A step with hcom_parallel on.
struct OverlappedStep {
  std::vector<SegmentTimes> segments;  ///< at least one, in order
  std::span<const Bytes> sizes;        ///< of the gradients, production order
  std::span<const Seconds> ready;      ///< dates at which the gradients are complete, production order, ascending
  Seconds backward_end = 0;            ///< bp_end
  /// Times of the gradients' updates, production order; they run in a stream of their own, each after its allreduce.
  /// Empty: none.
  std::span<const Seconds> updates = {};
  Seconds iteration_end = 0;  ///< updates included; 0: the end of the last allreduce
};

struct SplitAdvice {
  SplitScenario scenario = SplitScenario::well_split;
  std::string sentence;
  /// Lists for set_split_strategy_by_size, the best estimate first; at most one for each number of segments.
  std::vector<std::vector<double>> trials;
};

/// Scenario, sentence and trials. The trials are the best estimates of two, three and four segments among all lists of
/// multiples of 0.5 % (four segments: whole percentages), at most some 10^5 estimates however many gradients there are.
[[nodiscard]] SplitAdvice advise_split(const OverlappedStep& step);

}  // namespace hcclsim::hccl
