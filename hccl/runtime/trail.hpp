#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

/// Why a simulation stands still: from something that waits, by way of what it waits for, to a cause. Whoever simulates
/// knows the places on the way; the search is the same for all: streams of ranks (diagnosis.cpp), workers and servers
/// (hccl/ps/), nodes of a trace (study/communication/replay/).
namespace hcclsim::hccl {

/// What a place on the way comes from.
template <typename Place>
struct Origin {
  std::vector<Place> next{};  ///< what it waits for; of several, what matters most first
  std::string cause{};        ///< in words; empty: none is known
};

struct Trail {
  std::string lines{};     ///< the places from the first one on, one line each, which begins with a line break
  std::string cause{};     ///< empty: no way leads to one
  bool is_circle = false;  ///< without a cause: the last place waits for one of those before it
};

/// Follows what `from` waits for, and of several things those behind which there is a cause; without any the way that
/// was tried first. `Facts` has `origin(place)`, `line(place)`, and `key(place)`, by which places are compared.
template <typename Facts, typename Place>
[[nodiscard]] Trail trail_from(Place from, Facts&& facts) {
  struct Step {
    std::vector<Place> places;
    std::size_t at = 0;
  };
  std::vector<Step> way;
  way.push_back({{std::move(from)}});
  const auto lines = [&](std::size_t steps) {
    std::string text;
    for (std::size_t i = 0; i < steps; ++i) text += facts.line(way[i].places[way[i].at]);
    return text;
  };
  std::set<decltype(facts.key(way.front().places.front()))> seen;
  Trail first;
  while (!way.empty()) {
    Step& step = way.back();
    if (step.at == step.places.size()) {
      way.pop_back();
      if (!way.empty()) ++way.back().at;
      continue;
    }
    const Place& here = step.places[step.at];
    if (!seen.insert(facts.key(here)).second) {
      if (first.lines.empty()) first = {.lines = lines(way.size() - 1), .is_circle = true};
      ++step.at;
      continue;
    }
    Origin<Place> origin = facts.origin(here);
    if (!origin.cause.empty()) return {.lines = lines(way.size()), .cause = std::move(origin.cause)};
    if (!origin.next.empty()) {
      way.push_back({std::move(origin.next)});
      continue;
    }
    if (first.lines.empty()) first = {.lines = lines(way.size())};
    ++step.at;
  }
  return first;
}

/// The lines and, below them, the cause, or that there is none.
[[nodiscard]] inline std::string text_of(const Trail& trail) {
  const bool is_known = !trail.cause.empty();
  return trail.lines + "\n  cause: " + (is_known ? trail.cause : "a deadlock: nobody does what is waited for");
}

}  // namespace hcclsim::hccl
