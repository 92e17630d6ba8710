#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/collective/selection/explain.hpp"

/// Why a collective has its algorithm, for people: the rule by which it was chosen, and what the others would cost, by
/// HCCL's formula and simulated.
namespace hcclsim::study {

struct ExplainedAlgorithm {
  std::string name;     ///< as in Schedule::algorithm
  std::string formula;  ///< "14α + 1.75nβ"; empty: HCCL gives none
  std::optional<Seconds> formula_time{};
  std::optional<Seconds> simulated{};  ///< alone on the platform; none: not simulated
  bool chosen = false;
};

struct RefusedAlgorithm {
  std::string name;
  std::string reason;
};

struct ExplainedCollective {
  std::string title;  ///< "AR1"
  Bytes payload = 0;
  std::string rule;
  std::vector<ExplainedAlgorithm> algorithms{};
  std::vector<RefusedAlgorithm> refused{};  ///< those that cannot work here
  std::vector<std::string> levels{};        ///< what α, β and γ are, a line each
};

/// Beyond this number of NPUs simulating a ring over all of them takes too long; formulas are given alone then.
inline constexpr Rank most_explained_by_simulation = 128;

/// Without simulated times; its algorithms are the alternatives that have a schedule, in their order.
[[nodiscard]] ExplainedCollective explained(const hccl::Explanation& explanation, std::string title, Bytes payload);

}  // namespace hcclsim::study
