#pragma once

#include <vector>

#include "cli/experiment.hpp"
#include "cli/options/tune_options.hpp"
#include "cli/print/tune_report.hpp"
#include "study/split/problem.hpp"

/// How far the split that `hcclsim tune` has chosen stays the best when kernels jitter, when the bandwidth is another
/// one, and when the backward pass is distributed otherwise.
namespace hcclsim::cli {

/// The split and what it was chosen by.
struct Choice {
  const study::SplitProblem& problem;
  const study::SegmentCost& cost;
  const study::Cuts& cuts;
};

/// Steps whose kernels have the jitter of the options.
[[nodiscard]] JitterReport under_jitter(const TuneOptions& options, const Experiment& run, const Choice& choice);

/// The factors of `range`, with costs simulated at some of them.
[[nodiscard]] BandwidthReport over_bandwidth(const TuneOptions& options, const BandwidthRange& range, Experiment& run,
                                             const Choice& choice);

/// The same backward time in proportion to FLOPs (where the workload has them) and to bytes.
[[nodiscard]] std::vector<Sensitivity> under_proportions(const TuneOptions& options, const Experiment& run,
                                                         const Choice& choice);

}  // namespace hcclsim::cli
