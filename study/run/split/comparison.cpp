#include "study/run/split/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study/run/split/strategies.hpp"

namespace hcclsim::study {
namespace {

using Kind = Strategy::Kind;

/// Names of the kinds, in their order.
constexpr std::array<std::string_view, 11> words{"given", "default", "single",  "each",        "threshold", "mgwfbp",
                                                 "asc",   "dear",    "optimal", "by-segments", "lb"};
constexpr Bytes megabyte = 1'000'000;

Strategy parse_strategy(std::string_view name) {
  constexpr std::string_view with_size = "threshold:";
  if (name.starts_with(with_size)) {
    const Bytes threshold = parse_bytes(name.substr(with_size.size()));
    if (threshold == 0) bad_input("option", "'{}': a threshold must be more than 0, such as threshold:25MB", name);
    return {Kind::threshold, threshold};
  }
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end() || name == "threshold") {
    std::string accepted = fmt::format("{}", fmt::join(words, ", "));
    accepted.replace(accepted.find("threshold"), std::string_view("threshold").size(), "threshold:SIZE");
    bad_input("option", "unknown strategy '{}'; accepted: {}", name, accepted);
  }
  return {static_cast<Kind>(found - words.begin())};
}

/// "threshold 25 MB", or with the exact number of bytes.
std::string threshold_name(Bytes threshold) {
  return threshold % megabyte == 0 ? fmt::format("threshold {} MB", threshold / megabyte)
                                   : fmt::format("threshold {} B", threshold);
}

/// None for what is no split, and for DeAR without forward times.
std::optional<NamedSplit> contestant(const Contest& contest, const Strategy& strategy) {
  const SplitProblem& problem = contest.problem;
  const auto split = [&](std::string name, Cuts cuts) {
    return NamedSplit{std::move(name), timed(problem, contest.cost, std::move(cuts))};
  };
  switch (strategy.kind) {
    case Kind::given:
      return split("as given", contest.given);
    case Kind::vendor_default:
      return split("default", contest.vendor_default);
    case Kind::single:
      return split("one segment", one_segment(problem));
    case Kind::each:
      return split("one per tensor", one_per_gradient(problem));
    case Kind::threshold:
      return split(threshold_name(strategy.threshold), by_threshold(problem, strategy.threshold));
    case Kind::mg_wfbp:
      return split("MG-WFBP", mg_wfbp(problem, contest.affine));
    case Kind::asc_wfbp:
      return split("ASC-WFBP", asc_wfbp(problem, contest.affine));
    case Kind::dear:
      if (contest.forward.empty()) return std::nullopt;
      return NamedSplit{"DeAR",
                        {{}, problem.backward_end() + dear(problem, contest.affine, contest.forward).exposed, never}};
    case Kind::optimal:
      return NamedSplit{"best", contest.optimal};
    case Kind::by_segments:
    case Kind::bound:
      return std::nullopt;
  }
  internal_error("unknown strategy {}", static_cast<int>(strategy.kind));
}

}  // namespace

std::vector<Strategy> parse_strategies(std::string_view list) {
  std::vector<Strategy> strategies;
  for (const std::string_view name : split(list, ',')) {
    const Strategy strategy = parse_strategy(name);
    if (std::find(strategies.begin(), strategies.end(), strategy) != strategies.end()) {
      bad_input("option", "'{}' is listed twice", name);
    }
    strategies.push_back(strategy);
  }
  return strategies;
}

std::vector<Strategy> all_strategies() {
  return {{Kind::given},
          {Kind::vendor_default},
          {Kind::single},
          {Kind::each},
          {Kind::threshold, 25 * megabyte},
          {Kind::threshold, 64 * megabyte},
          {Kind::mg_wfbp},
          {Kind::asc_wfbp},
          {Kind::dear},
          {Kind::optimal},
          {Kind::by_segments},
          {Kind::bound}};
}

bool holds(std::span<const Strategy> strategies, Strategy::Kind kind) {
  return std::any_of(strategies.begin(), strategies.end(),
                     [kind](const Strategy& strategy) { return strategy.kind == kind; });
}

std::vector<NamedSplit> contestants(const Contest& contest, std::span<const Strategy> strategies) {
  std::vector<NamedSplit> all;
  for (const Strategy& strategy : strategies) {
    if (std::optional<NamedSplit> split = contestant(contest, strategy)) all.push_back(std::move(*split));
  }
  return all;
}

}  // namespace hcclsim::study
