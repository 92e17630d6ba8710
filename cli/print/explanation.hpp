#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "study/platform/explanation.hpp"

/// What `--explain` prints of a collective: the rule by which its algorithm was chosen, and what the others would cost,
/// by HCCL's formula and simulated.
namespace hcclsim::cli {

[[nodiscard]] std::string explanation_text(const std::vector<study::ExplainedCollective>& collectives);
[[nodiscard]] Json explanation_json(const std::vector<study::ExplainedCollective>& collectives);

}  // namespace hcclsim::cli
