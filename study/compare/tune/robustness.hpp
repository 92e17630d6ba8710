#pragma once

#include <vector>

#include "study/compare/tune/result.hpp"
#include "study/compare/tune/spec.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/split/problem.hpp"

/// How far the split that was chosen stays the best when kernels jitter, when the bandwidth is another
/// one, and when the backward pass is distributed otherwise.
namespace hcclsim::study {

/// The split and what it was chosen by.
struct Choice {
  const SplitProblem& problem;
  const SegmentCost& cost;
  const Cuts& cuts;
};

/// Steps whose kernels have the jitter of the spec.
[[nodiscard]] JitterResult under_jitter(const TuneSpec& spec, const Experiment& run, const Choice& choice);

/// The factors of `range`, with costs simulated at some of them.
[[nodiscard]] BandwidthResult over_bandwidth(const TuneSpec& spec, const BandwidthRange& range, Experiment& run,
                                             const Choice& choice);

/// The same backward time in proportion to FLOPs (where the program has them) and to bytes.
[[nodiscard]] std::vector<Sensitivity> under_proportions(const TuneSpec& spec, const Experiment& run,
                                                         const Choice& choice);

}  // namespace hcclsim::study
