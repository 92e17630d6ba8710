#pragma once

#include <optional>
#include <vector>

#include "base/child_process.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/result.hpp"
#include "study/run/trial_search.hpp"

/// What a run is compared with: one NPU alone, hcom_parallel turned, and, where all ranks
/// reduce their gradients together, the best splits that are found. Each is a simulation in a child of the process that
/// has loaded the platform; none is a formula. The children work while this process simulates the run itself.
namespace hcclsim::study {

class Comparisons {
 public:
  /// Starts them all, or, without `splits`, one NPU alone. Must be called before this process simulates anything. The
  /// experiment must outlive the object.
  Comparisons(Experiment& experiment, bool splits);

  /// Waits for the results.
  [[nodiscard]] Comparison finish();

 private:
  std::optional<ChildOf<Seconds>> one_npu_;
  std::optional<ChildOf<Seconds>> turned_;
  std::optional<TrialSearch> search_;
};

}  // namespace hcclsim::study
