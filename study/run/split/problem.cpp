#include "study/run/split/problem.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {

SplitProblem::SplitProblem(std::span<const Seconds> ready, std::span<const Bytes> bytes, const Followers& followers)
    : following_(ready.size() + 1, 0), rest_(followers.rest) {
  if (ready.size() != bytes.size() || ready.empty()) {
    bad_input("split", "{} ready times and {} sizes; as many of both are needed, and at least one", ready.size(),
              bytes.size());
  }
  set_ready(ready);
  bytes_.reserve(bytes.size() + 1);
  bytes_.push_back(0);
  for (const Bytes size : bytes) bytes_.push_back(bytes_.back() + size);
  const std::vector<Seconds>& after = followers.of_gradients;
  if (!after.empty() && after.size() != ready.size()) {
    bad_input("split", "{} gradients, and times of what follows {} of them", ready.size(), after.size());
  }
  for (std::size_t i = after.size(); i-- > 0;) {
    if (!std::isfinite(after[i]) || after[i] < 0) bad_input("split", "{} s follow gradient {}", after[i], i);
    following_[i] = following_[i + 1] + after[i];
  }
  if (!std::isfinite(rest_) || rest_ < 0) bad_input("split", "{} s follow the reductions", rest_);
}

void SplitProblem::set_ready(std::span<const Seconds> ready) {
  ready_.clear();
  ready_.reserve(ready.size());
  Seconds latest = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (!std::isfinite(ready[i]) || ready[i] < 0) bad_input("split", "gradient {} is ready at {} s", i, ready[i]);
    latest = std::max(latest, ready[i]);
    ready_.push_back(latest);
  }
}

SplitProblem SplitProblem::with_ready(std::span<const Seconds> ready) const {
  if (ready.size() != ready_.size()) internal_error("{} ready times for {} gradients", ready.size(), ready_.size());
  SplitProblem problem = *this;
  problem.set_ready(ready);
  return problem;
}

SplitProblem SplitProblem::without_rest() const {
  SplitProblem problem = *this;
  problem.rest_ = 0;
  return problem;
}

namespace {

std::size_t index_of_part(const std::vector<CostPart>& parts, Bytes bytes) {
  const auto behind = std::upper_bound(parts.begin() + 1, parts.end(), bytes,
                                       [](Bytes size, const CostPart& part) { return size < part.from; });
  return static_cast<std::size_t>(behind - parts.begin()) - 1;
}

}  // namespace

SegmentCost::SegmentCost(std::vector<CostPart> straight) : parts(std::move(straight)) {
  if (parts.empty() || parts.front().from != 0) internal_error("a cost needs a part from 0 bytes on");
  cost = [parts = parts](Bytes bytes) { return parts[index_of_part(parts, bytes)].line(bytes); };
}

SegmentCost SegmentCost::plus(Seconds more) const {
  if (parts.empty()) return Cost([cost = cost, more](Bytes bytes) { return cost(bytes) + more; });
  std::vector<CostPart> longer = parts;
  for (CostPart& part : longer) part.line.alpha += more;
  return SegmentCost(std::move(longer));
}

std::size_t SegmentCost::part_of(Bytes bytes) const { return index_of_part(parts, bytes); }

bool SegmentCost::parts_rise() const {
  return !parts.empty() &&
         std::all_of(parts.begin(), parts.end(), [](const CostPart& part) { return part.line.beta >= 0; });
}

std::vector<SegmentTime> timeline(const SplitProblem& problem, const Cost& cost, const Cuts& cuts) {
  std::vector<SegmentTime> segments;
  segments.reserve(cuts.size());
  std::uint32_t begin = 0;
  Seconds free = 0;
  Seconds late = 0;
  for (const std::uint32_t last : cuts) {
    if (last < begin || last >= problem.size()) {
      bad_input("split", "index {} cannot follow; indices ascend and the last one is {}", last, problem.size() - 1);
    }
    SegmentTime segment{.first = begin, .last = last, .bytes = problem.bytes(begin, last + 1)};
    segment.waits_for_gradient = problem.ready(last + 1) >= free;
    segment.start = std::max(free, problem.ready(last + 1));
    segment.end = segment.start + cost(segment.bytes);
    free = segment.end;
    late = std::max(late, segment.end + problem.followers_from(begin));
    segment.followed = std::max(segment.end, late - problem.followers_from(last + 1));
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
  const SegmentTime last = timeline(problem, cost, cuts).back();
  return {std::move(cuts), last.end, last.followed + problem.rest()};
}

}  // namespace hcclsim::study
