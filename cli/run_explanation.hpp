#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "cli/comparisons.hpp"
#include "cli/print/explanation.hpp"
#include "cli/print/run_report.hpp"

/// `hcclsim run --explain`: why the allreduces of the segments use their algorithms. Of the segments that use the same
/// algorithm the largest is explained. The other algorithms are simulated in a child, alone on the idle platform, each
/// with all NPUs starting at once.
namespace hcclsim::cli {

class RunExplanation {
 public:
  /// Starts the simulations. Must be called before this process simulates anything. The setting must outlive the
  /// object.
  explicit RunExplanation(const Setting& setting);

  /// Waits for the results and puts them into the report.
  void finish(RunReport& report);

 private:
  std::vector<ExplainedCollective> collectives_;
  std::optional<Child> child_;  // returns the times of all algorithms of all collectives
};

}  // namespace hcclsim::cli
