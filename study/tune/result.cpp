#include "study/tune/result.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hcclsim::study {

double TuneResult::gap_of(Seconds finish) const {
  if (certificate.bound.finish <= 0) return 0;
  return std::max(finish / certificate.bound.finish - 1, 0.0);  // an end at the bound may be rounded below it
}

std::optional<TuneResult::Rival> TuneResult::least_of(Seconds ConfirmedSplit::*time, Seconds below,
                                                      std::size_t most_segments) const {
  std::optional<Rival> least;
  const auto consider = [&](const std::string& name, const Cuts& cuts, const ConfirmedSplit& times) {
    if (cuts.size() > most_segments || !(times.*time < (least.has_value() ? least->times.*time : below))) return;
    least = {name, cuts, times};
  };
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const NamedSplit& split = tuning.strategies[i];
    if (strategies[i].has_value()) consider(split.name, split.cuts, *strategies[i]);
  }
  for (std::size_t k = 0; k < by_segments.size(); ++k) {
    consider(fmt::format("best of {}", k + 1), tuning.by_segments[k].cuts, by_segments[k]);
  }
  return least;
}

std::optional<TuneResult::Rival> TuneResult::shorter_step(std::size_t most_segments) const {
  return least_of(&ConfirmedSplit::step, best.step, most_segments);
}

std::optional<TuneResult::Rival> TuneResult::earlier_end() const {
  constexpr double clearly = 1e-4;
  return least_of(&ConfirmedSplit::finish, best.finish * (1 - clearly), most_segments);
}

}  // namespace hcclsim::study
