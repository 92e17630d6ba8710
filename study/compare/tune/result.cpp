#include "study/compare/tune/result.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hcclsim::study {

double TuneResult::gap_of(Seconds time) const {
  if (certificate.bound.time <= 0) return 0;
  return std::max(time / certificate.bound.time - 1, 0.0);  // a time at the bound may be rounded below it
}

std::optional<TuneResult::Rival> TuneResult::better_than(Seconds time, std::size_t segments) const {
  return least(objective, time, segments);
}

std::optional<TuneResult::Rival> TuneResult::shortest_step() const {
  return least(Objective::step, best.step, most_segments);
}

std::optional<TuneResult::Rival> TuneResult::least(Objective of, Seconds below, std::size_t segments) const {
  std::optional<Rival> found;
  Seconds limit = below * (1 - clearly);
  const auto consider = [&](const std::string& name, const Cuts& cuts, const ConfirmedSplit& times) {
    if (cuts.size() > segments || !(times.time(of) < limit)) return;
    limit = times.time(of);
    found = {name, cuts, times};
  };
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const NamedSplit& strategy = tuning.strategies[i];
    if (strategies[i].has_value()) consider(strategy.name, strategy.split.cuts, *strategies[i]);
  }
  for (std::size_t k = 0; k < by_segments.size(); ++k) {
    consider(fmt::format("best of {}", k + 1), tuning.by_segments[k].cuts, by_segments[k]);
  }
  for (const auto& [cuts, times] : all_splits) consider("best of all", cuts, times);
  return found;
}

}  // namespace hcclsim::study
