#include "study/platform/assumptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "study/platform/link_sources.hpp"

namespace hcclsim::study {
namespace {

using Subject = Assumption::Subject;

/// What times of a subject are multiplied with; 1 if nothing is assumed of it.
double factor_of(std::span<const Assumption> assumptions, Subject subject, RangeEnd end) {
  const auto found = std::ranges::find(assumptions, subject, &Assumption::subject);
  if (found == assumptions.end()) return 1;
  return end == RangeEnd::slow ? 1 + found->slower : 1 - found->faster;
}

Assumption of_times(Subject subject, std::string_view what, double faster, double slower) {
  return {.subject = subject,
          .text = fmt::format("{} -{:g}..+{:g} %", what, faster * 100, slower * 100),
          .faster = faster,
          .slower = slower};
}

/// The ranges of the kinds of links, of those that have one, on the ways that link_sources() looks at.
std::map<sim::LinkKind, std::pair<BytesPerSecond, BytesPerSecond>> link_ranges(sim::Cluster& cluster,
                                                                               std::span<const Rank> ranks) {
  std::map<sim::LinkKind, std::pair<BytesPerSecond, BytesPerSecond>> ranges;
  for (const sim::LinkId id : links_between(cluster, ranks)) {
    const sim::Link& link = cluster.links()[id];
    if (link.low == link.high) continue;
    const auto [place, is_new] = ranges.try_emplace(link.kind, link.low, link.high);
    if (is_new) continue;
    place->second.first = std::min(place->second.first, link.low);
    place->second.second = std::max(place->second.second, link.high);
  }
  return ranges;
}

}  // namespace

std::vector<Assumption> assumptions_of(sim::Cluster& cluster, std::span<const Rank> ranks,
                                       const AssumedSubjects& subjects) {
  std::vector<Assumption> assumptions;
  for (const auto& [kind, range] : link_ranges(cluster, ranks)) {
    const auto& [low, high] = range;
    assumptions.push_back({.subject = Subject::links,
                           .kind = kind,
                           .text = fmt::format("{} {:g}..{:g} GB/s", title_of(kind), low / giga, high / giga)});
  }
  if (subjects.slower_kernels.has_value()) {
    assumptions.push_back(of_times(Subject::kernels, "kernel times", faster_kernels, *subjects.slower_kernels));
  }
  if (subjects.host) assumptions.push_back(of_times(Subject::host, "host issue", host_range, host_range));
  if (subjects.vector_cores) {
    assumptions.push_back(of_times(Subject::vector_cores, "vector cores", vector_core_range, vector_core_range));
  }
  if (subjects.launches) {
    assumptions.push_back(of_times(Subject::launches, "kernel launches", faster_launches, slower_launches));
  }
  return assumptions;
}

void assume(sim::Cluster& cluster, std::span<const Assumption> assumptions, RangeEnd end) {
  std::map<sim::LinkKind, sim::LinkValues> values;
  for (const Assumption& assumption : assumptions) {
    if (assumption.subject != Subject::links) continue;
    values[assumption.kind] = end == RangeEnd::slow ? sim::LinkValues::low : sim::LinkValues::high;
  }
  cluster.use(values);
}

device::TaskCosts assumed(device::TaskCosts costs, std::span<const Assumption> assumptions, RangeEnd end) {
  const double host = factor_of(assumptions, Subject::host, end);
  costs.issue.base *= host;
  costs.issue.task *= host;
  for (auto& [collective, base] : costs.issue.base_of) base *= host;
  const double vector_cores = factor_of(assumptions, Subject::vector_cores, end);
  costs.vector_cores.launch *= vector_cores;
  costs.vector_cores.access *= vector_cores;
  return costs;
}

std::optional<Seconds> assumed_launch(std::optional<Seconds> launch, std::span<const Assumption> assumptions,
                                      RangeEnd end) {
  if (launch.has_value()) *launch *= factor_of(assumptions, Subject::launches, end);
  return launch;
}

models::Program assumed(models::Program program, std::span<const Assumption> assumptions, RangeEnd end) {
  const double factor = factor_of(assumptions, Subject::kernels, end);
  for (models::Kernel& kernel : program.kernels) kernel.duration = kernel.slowed(factor);
  return program;
}

Seconds AssumptionEffect::span() const {
  constexpr double rounding = 1e-12;
  const Seconds difference = std::abs(slow - fast);
  return difference <= rounding * slow ? 0 : difference;
}

void sort_effects(Uncertainty& uncertainty) {
  std::stable_sort(
      uncertainty.effects.begin(), uncertainty.effects.end(),
      [](const AssumptionEffect& one, const AssumptionEffect& other) { return one.span() > other.span(); });
}

}  // namespace hcclsim::study
