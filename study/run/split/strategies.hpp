#pragma once

#include <span>

#include "study/run/split/problem.hpp"

/// What others do, for comparison. All work on the same problem as the optimum.
namespace hcclsim::study {

/// One segment: SyncEASGD, and what is best where communication does not run beside the backward pass.
[[nodiscard]] Cuts one_segment(const SplitProblem& problem);
/// Wait-free back-propagation: each gradient alone.
[[nodiscard]] Cuts one_per_gradient(const SplitProblem& problem);
/// A segment ends with the gradient that brings it to `threshold` bytes: the buckets of DDP (25 MB), Horovod and
/// MindSpore (64 MB).
[[nodiscard]] Cuts by_threshold(const SplitProblem& problem, Bytes threshold);
/// MG-WFBP (Shi, Chu, Li, INFOCOM 2019): from the first gradient on, one is merged into the next if that is ready
/// before the first could have started up, i.e. before its start + alpha; starts follow from the merges so far. Not
/// optimal: it weighs a merge by the next gradient alone.
[[nodiscard]] Cuts mg_wfbp(const SplitProblem& problem, const AffineCost& cost);
/// ASC-WFBP (Shi, Chu, Li, INFOCOM 2021): one is merged into the next if that is ready before the first starts.
[[nodiscard]] Cuts asc_wfbp(const SplitProblem& problem, const AffineCost& cost);

/// DeAR (arXiv 2302.12445): an allreduce is a reduce-scatter beside the backward pass and an all-gather beside the next
/// forward pass, each of half its cost. Both phases have splits of their own, here the best ones: the second one is the
/// first one in reversed time.
struct Decoupled {
  Split reduce_scatter;       ///< production order
  Cuts all_gather;            ///< production order, too: the last segment is gathered first
  Seconds forward_delay = 0;  ///< by which the next forward pass takes longer
  Seconds exposed = 0;        ///< what both phases add to the computation
};

/// `forward`: times of the forward pass of what each gradient belongs to, production order; their sum is the forward
/// pass. As many as gradients, else Error(bad_input, "split").
[[nodiscard]] Decoupled dear(const SplitProblem& problem, const AffineCost& cost, std::span<const Seconds> forward);

}  // namespace hcclsim::study
