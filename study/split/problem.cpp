#include "study/split/problem.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {

SplitProblem::SplitProblem(std::span<const Seconds> ready, std::span<const Bytes> bytes) {
  if (ready.size() != bytes.size() || ready.empty()) {
    bad_input("split", "{} ready times and {} sizes; as many of both are needed, and at least one", ready.size(),
              bytes.size());
  }
  ready_.reserve(ready.size());
  bytes_.reserve(bytes.size() + 1);
  bytes_.push_back(0);
  Seconds latest = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (!std::isfinite(ready[i]) || ready[i] < 0) bad_input("split", "gradient {} is ready at {} s", i, ready[i]);
    latest = std::max(latest, ready[i]);
    ready_.push_back(latest);
    bytes_.push_back(bytes_.back() + bytes[i]);
  }
}

std::vector<SegmentTime> timeline(const SplitProblem& problem, const Cost& cost, const Cuts& cuts) {
  std::vector<SegmentTime> segments;
  segments.reserve(cuts.size());
  std::uint32_t begin = 0;
  Seconds free = 0;
  for (const std::uint32_t last : cuts) {
    if (last < begin || last >= problem.size()) {
      bad_input("split", "index {} cannot follow; indices ascend and the last one is {}", last, problem.size() - 1);
    }
    SegmentTime segment{.first = begin, .last = last, .bytes = problem.bytes(begin, last + 1)};
    segment.waits_for_gradient = problem.ready(last + 1) >= free;
    segment.start = std::max(free, problem.ready(last + 1));
    segment.end = segment.start + cost(segment.bytes);
    free = segment.end;
    begin = last + 1;
    segments.push_back(segment);
  }
  if (begin != problem.size()) {
    bad_input("split", "the last index is {}; it must be that of the last gradient, {}",
              cuts.empty() ? "missing" : std::to_string(cuts.back()), problem.size() - 1);
  }
  return segments;
}

Split timed(const SplitProblem& problem, const Cost& cost, Cuts cuts) {
  const Seconds finish = timeline(problem, cost, cuts).back().end;
  return {std::move(cuts), finish};
}

}  // namespace hcclsim::study
