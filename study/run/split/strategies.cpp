#include "study/run/split/strategies.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

/// Merges segments from the first gradient on; `merge(start, ready)` says whether the segment that would start at
/// `start` takes the next gradient, which is ready at `ready`.
template <typename Merge>
Cuts merged(const SplitProblem& problem, const AffineCost& cost, const Merge& merge) {
  Cuts cuts;
  std::uint32_t begin = 0;
  Seconds free = 0;
  for (std::uint32_t last = 0; last < problem.size(); ++last) {
    const Seconds start = std::max(free, problem.ready(last + 1));
    if (last + 1 < problem.size() && merge(start, problem.ready(last + 2))) continue;
    free = start + cost(problem.bytes(begin, last + 1));
    begin = last + 1;
    cuts.push_back(last);
  }
  return cuts;
}

}  // namespace

Cuts one_segment(const SplitProblem& problem) { return {problem.size() - 1}; }

Cuts one_per_gradient(const SplitProblem& problem) {
  Cuts cuts(problem.size());
  std::iota(cuts.begin(), cuts.end(), 0U);
  return cuts;
}

Cuts by_threshold(const SplitProblem& problem, Bytes threshold) {
  Cuts cuts;
  std::uint32_t begin = 0;
  for (std::uint32_t last = 0; last < problem.size(); ++last) {
    if (last + 1 < problem.size() && problem.bytes(begin, last + 1) < threshold) continue;
    cuts.push_back(last);
    begin = last + 1;
  }
  return cuts;
}

Cuts mg_wfbp(const SplitProblem& problem, const AffineCost& cost) {
  return merged(problem, cost, [&](Seconds start, Seconds ready) { return ready < start + cost.alpha; });
}

Cuts asc_wfbp(const SplitProblem& problem, const AffineCost& cost) {
  return merged(problem, cost, [](Seconds start, Seconds ready) { return ready < start; });
}

Decoupled dear(const SplitProblem& problem, const AffineCost& cost, std::span<const Seconds> forward) {
  const std::uint32_t n = problem.size();
  if (forward.size() != n) bad_input("split", "{} forward times for {} gradients", forward.size(), n);
  const AffineCost half{cost.alpha / 2, cost.beta / 2};
  Decoupled result;
  result.reduce_scatter = best_split(problem, half);

  // The forward pass uses gradient n−1 first and gradient 0 last. In reversed time gradient 0 comes first: its part of
  // the forward pass may only run after it was gathered, so its all-gather is "ready" when, seen backwards, that part
  // has run, and the reversed stream ends with gradient n−1.
  std::vector<Seconds> ready(n);
  std::vector<Bytes> bytes(n);
  Seconds run = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    run += forward[i];
    ready[i] = run;
    bytes[i] = problem.bytes(i, i + 1);
  }
  const Split gathered = best_split(SplitProblem(ready, bytes), half);
  result.all_gather = gathered.cuts;
  result.forward_delay = gathered.finish - run;
  result.exposed = result.reduce_scatter.finish - problem.backward_end() + result.forward_delay;
  return result;
}

}  // namespace hcclsim::study
