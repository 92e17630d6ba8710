#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/run/advice.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/split_search/split_search.hpp"

/// The search of `tune` for a shorter step, for the advice of a run.
namespace hcclsim::study {

class TrialSearch {
 public:
  /// Simulates the step with hcom_parallel on, searches, and starts the best splits of each number of segments and
  /// HCCL's default, under the run's own options. Must be called before this process simulates anything. The
  /// experiment must outlive the object.
  explicit TrialSearch(Experiment& run);

  /// Step time with hcom_parallel on.
  [[nodiscard]] Seconds own_step() const { return own_.step; }
  /// Waits for the trials. Those that are other splits than the run's own, the best first: as `tune` chooses, without
  /// jitter and as the slowest rank sees them.
  [[nodiscard]] std::vector<Trial> trials();
  /// Scenario and sentence, with the trials at hand.
  [[nodiscard]] SplitAdvice advice(const std::vector<Trial>& trials) const;

 private:
  /// Who comes late, where ranks wait.
  [[nodiscard]] std::string late_rank() const;

  Experiment& run_;
  hccl::TrainingStep options_;
  hccl::TrainingStep base_;  ///< those that splits are compared under
  bool is_base_;             ///< they are the run's own
  SimulatedStep own_;
  SplitProblem problem_;
  SearchedCost searched_;
  SplitTrials under_options_;
  SplitTrials under_base_;
};

}  // namespace hcclsim::study
