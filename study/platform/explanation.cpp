#include "study/platform/explanation.hpp"

#include <utility>

namespace hcclsim::study {

ExplainedCollective explained(const hccl::Explanation& explanation, std::string title, Bytes payload) {
  ExplainedCollective collective{
      .title = std::move(title), .payload = payload, .rule = explanation.rule, .levels = level_lines(explanation)};
  for (const hccl::Alternative& alternative : explanation.alternatives) {
    if (alternative.schedule == nullptr) {
      collective.refused.push_back({alternative.algorithm, alternative.refused});
      continue;
    }
    ExplainedAlgorithm algorithm{.name = alternative.algorithm, .formula = {}, .chosen = alternative.chosen};
    if (alternative.formula.has_value()) {
      algorithm.formula = to_string(*alternative.formula, payload);
      algorithm.formula_time = alternative.formula_time;
    }
    collective.algorithms.push_back(std::move(algorithm));
  }
  return collective;
}

}  // namespace hcclsim::study
