#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"

/// What `--explain` prints of a collective: the rule by which its algorithm was chosen, and what the others would cost,
/// by HCCL's formula and simulated.
namespace hcclsim::cli {

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

[[nodiscard]] std::string explanation_text(const std::vector<ExplainedCollective>& collectives);
[[nodiscard]] Json explanation_json(const std::vector<ExplainedCollective>& collectives);

}  // namespace hcclsim::cli
