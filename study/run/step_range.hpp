#pragma once

#include <vector>

#include "base/child_process.hpp"
#include "study/platform/assumptions.hpp"
#include "study/run/experiment/experiment.hpp"

/// The range of a training step over what is assumed. Every end is a simulation in a child of the process that has
/// loaded the platform; they work while that process simulates the run itself.
namespace hcclsim::study {

class StepRange {
 public:
  /// Starts the simulations; with `each` those of each assumption by itself too. Must be called before this process
  /// simulates anything. The experiment must outlive the object.
  StepRange(Experiment& experiment, bool each);

  /// Waits for the results; `used`: the step with all assumptions as they are used.
  [[nodiscard]] Uncertainty finish(Seconds used);

 private:
  struct Ends {
    std::string text;
    ChildOf<Seconds> fast;
    ChildOf<Seconds> slow;
  };
  [[nodiscard]] static Ends ends_of(Experiment& experiment, std::string text,
                                    const std::vector<Assumption>& assumptions);

  std::vector<Ends> ends_;  // of all assumptions together, then of each
};

}  // namespace hcclsim::study
