#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "study/platform/explanation.hpp"
#include "study/run/experiment/experiment.hpp"

/// Why the reductions of the printed rank's gradients use their algorithms. Of the reductions that use the same
/// algorithm the largest is explained. The other algorithms are simulated in a child, alone on the idle platform, each
/// with all NPUs starting at once.
namespace hcclsim::study {

class RunExplanation {
 public:
  /// Starts the simulations. Must be called before this process simulates anything. The experiment must outlive
  /// the object.
  explicit RunExplanation(Experiment& experiment);

  /// Waits for the results.
  [[nodiscard]] std::vector<ExplainedCollective> finish();

 private:
  std::vector<ExplainedCollective> collectives_;
  std::optional<ChildOf<std::vector<Seconds>>> child_;  // returns the times of all algorithms of all collectives
};

}  // namespace hcclsim::study
