#include "study/uncertainty/assumptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "study/link_sources.hpp"

namespace hcclsim::study {
namespace {

using Subject = Assumption::Subject;

bool holds(std::span<const Assumption> assumptions, Subject subject) {
  return std::any_of(assumptions.begin(), assumptions.end(),
                     [&](const Assumption& assumption) { return assumption.subject == subject; });
}

double factor_of(double range, RangeEnd end) { return end == RangeEnd::slow ? 1 + range : 1 - range; }

std::string percent_text(std::string_view what, double range) {
  return fmt::format("{0} -{1:g}..+{1:g} %", what, range * 100);
}

/// The ranges of the kinds of links on the ways that link_sources() looks at.
std::map<sim::LinkKind, std::pair<BytesPerSecond, BytesPerSecond>> link_ranges(sim::Cluster& cluster,
                                                                               std::span<const Rank> ranks) {
  std::map<sim::LinkKind, std::pair<BytesPerSecond, BytesPerSecond>> ranges;
  for (const sim::LinkId id : links_between(cluster, ranks)) {
    const sim::Link& link = cluster.links()[id];
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
    if (low == high) continue;
    assumptions.push_back({.subject = Subject::links,
                           .kind = kind,
                           .text = fmt::format("{} {:g}..{:g} GB/s", title_of(kind), low / giga, high / giga)});
  }
  if (subjects.kernels) {
    assumptions.push_back({.subject = Subject::kernels, .text = percent_text("kernel times", kernel_range)});
  }
  if (subjects.host) {
    assumptions.push_back({.subject = Subject::host, .text = percent_text("host issue", host_range)});
  }
  if (subjects.vector_cores) {
    assumptions.push_back({.subject = Subject::vector_cores, .text = percent_text("vector cores", vector_core_range)});
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
  if (holds(assumptions, Subject::host)) {
    const double factor = factor_of(host_range, end);
    costs.issue.base *= factor;
    costs.issue.task *= factor;
    for (auto& [collective, base] : costs.issue.base_of) base *= factor;
  }
  if (holds(assumptions, Subject::vector_cores)) {
    const double factor = factor_of(vector_core_range, end);
    costs.vector_cores.launch *= factor;
    costs.vector_cores.access *= factor;
  }
  return costs;
}

models::Program assumed(models::Program program, std::span<const Assumption> assumptions, RangeEnd end) {
  if (!holds(assumptions, Subject::kernels)) return program;
  for (models::Kernel& kernel : program.kernels) kernel.duration *= factor_of(kernel_range, end);
  return program;
}

Seconds AssumptionEffect::span() const {
  constexpr double rounding = 1e-12;
  return std::abs(slow - fast) <= rounding * slow ? 0 : slow - fast;
}

void sort_effects(Uncertainty& uncertainty) {
  std::stable_sort(
      uncertainty.effects.begin(), uncertainty.effects.end(),
      [](const AssumptionEffect& one, const AssumptionEffect& other) { return one.span() > other.span(); });
}

}  // namespace hcclsim::study
