#include "study/compare/tune/robustness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "device/skew.hpp"
#include "study/compare/tune/ready_times.hpp"
#include "study/run/split_search/simulations.hpp"

namespace hcclsim::study {
namespace {

/// As many as take a few seconds for thousands of NPUs.
std::uint32_t draws_for(const Experiment& run) {
  constexpr std::uint64_t most_kernels = 20'000'000;
  const std::uint64_t kernels = std::max<std::uint64_t>(std::uint64_t{run.npus} * run.program->micro_batch_kernels, 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most_kernels / kernels, 100, 1000));
}

/// The range of a kind of link as factors on its used bandwidth.
BandwidthRange published_range(sim::LinkKind kind, const sim::Cluster& cluster) {
  BandwidthRange range{.low = 0, .high = 0, .kind = kind};
  std::set<std::string_view> kinds;
  for (const sim::Link& link : cluster.links()) {
    kinds.insert(name_of(link.kind));
    if (link.kind != kind) continue;
    const double low = link.low / link.bandwidth;
    const double high = link.high / link.bandwidth;
    if (range.high > 0 && (low != range.low || high != range.high)) {
      bad_input("option",
                "--bandwidth-range {}: {} has links of this kind with different ranges; give factors such as 0.5:2",
                name_of(kind), cluster.path());
    }
    range.low = low;
    range.high = high;
  }
  if (range.high == 0) {
    bad_input("option", "--bandwidth-range {}: {} has no such link; it has {}", name_of(kind), cluster.path(),
              fmt::join(kinds, ", "));
  }
  if (range.low >= range.high) {
    bad_input("option", "--bandwidth-range {}: {} gives no range of this kind; give factors such as 0.5:2",
              name_of(kind), cluster.path());
  }
  return range;
}

/// Five factors, each the same multiple of the one before, and 1 if it lies between.
std::vector<double> simulated_factors(const BandwidthRange& range) {
  constexpr int parts = 4;
  std::vector<double> factors{range.low};
  for (int i = 1; i < parts; ++i) {
    factors.push_back(range.low * std::pow(range.high / range.low, static_cast<double>(i) / parts));
  }
  factors.push_back(range.high);
  if (range.low < 1 && 1 < range.high && std::find(factors.begin(), factors.end(), 1.0) == factors.end()) {
    factors.push_back(1);
    std::sort(factors.begin(), factors.end());
  }
  return factors;
}

}  // namespace

JitterResult under_jitter(const TuneSpec& spec, const Experiment& run, const Choice& choice) {
  const device::Skew skew(spec.run.skew, run.npus);
  const bool overlapped = run.training.step.hcom_parallel;
  const auto problem = [&](std::uint32_t draw) {
    std::vector<Seconds> dates = jittered_ready(*run.program, skew, run.npus, draw);
    if (!overlapped) std::fill(dates.begin(), dates.end(), dates.back());
    return choice.problem.with_ready(dates);
  };
  return {spec.run.skew.jitter, spec.run.skew.seed,
          under_jitter(choice.cuts, choice.cost, spec.search.aim, draws_for(run), problem)};
}

BandwidthResult over_bandwidth(const TuneSpec& spec, const BandwidthRange& range, Experiment& run,
                               const Choice& choice) {
  const BandwidthRange factors = range.kind.has_value() ? published_range(*range.kind, run.cluster) : range;
  const std::vector<Bytes> sizes = cost_sizes(spec.search.cost, choice.problem);
  std::vector<std::pair<double, ChildOf<std::vector<CostPoint>>>> children;
  for (const double factor : simulated_factors(factors)) {
    children.emplace_back(factor, start_costs(run, sizes, {factor, factors.kind}));
  }
  std::vector<CostOverBandwidth::Point> points;
  for (auto& [factor, child] : children) {
    points.push_back({factor, segment_cost(spec.search.cost, child.result())});
  }
  const CostOverBandwidth costs(std::move(points));
  const auto regret_at = [&](double factor) {
    return regret_of(choice.cuts, choice.problem, costs.at(factor), spec.search.aim);
  };
  const double chosen_at = std::clamp(1.0, factors.low, factors.high);
  return {.kind = factors.kind,
          .simulated = static_cast<std::uint32_t>(children.size()),
          .intervals = best_over_bandwidth(choice.problem, costs, spec.search.aim, choice.cuts, chosen_at),
          .at_lowest = regret_at(factors.low),
          .at_highest = regret_at(factors.high)};
}

std::vector<Sensitivity> under_proportions(const TuneSpec& spec, const Experiment& run, const Choice& choice) {
  // A measured profile does not tell where the backward pass begins: the first gradient's date is as good.
  const Seconds forward = forward_end(*run.program);
  const bool is_profile = forward == 0;
  const Seconds begin = is_profile ? choice.problem.ready(1) : forward;
  std::vector<Sensitivity> all;
  const auto add = [&](std::string quantity, std::vector<double> weights) {
    if (is_profile) weights.front() = 0;
    const std::vector<Seconds> ready = ready_in_proportion(weights, begin, choice.problem.backward_end());
    if (ready.empty()) return;
    all.push_back(
        {std::move(quantity), regret_of(choice.cuts, choice.problem.with_ready(ready), choice.cost, spec.search.aim)});
  };
  add("FLOPs", backward_flops(*run.program));
  add("bytes", {run.gradient_sizes.begin(), run.gradient_sizes.end()});
  return all;
}

}  // namespace hcclsim::study
