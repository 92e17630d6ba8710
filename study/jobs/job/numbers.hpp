#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "study/jobs/job/msjob/msjob.hpp"
#include "study/jobs/job/training.hpp"
#include "study/spec/run_spec.hpp"

/// The training of a job with real gradients: what its processes compute from run to run. A run that does not begin
/// with step 0 goes on from the checkpoint before it. That of data parallelism holds weights, the optimizer's state and
/// the position in the data; that of parameter servers the weights of a worker, and what the servers' optimizers
/// remember is lost. A run that begins with step 0 has new weights. Steps of lost runs were computed too, and are
/// computed again.
namespace hcclsim::study {

/// What a step has computed, over all NPUs that took part.
struct JobStep {
  std::uint64_t step = 0;  ///< from 0 on, as TrainingRun has it
  Seconds end = 0;         ///< its date
  double loss = 0;
  double accuracy = 0;
};

struct JobNumerics {
  std::string computed_shape{};  ///< "2 x 3x64x64"
  std::string data{};
  std::uint64_t seed = 0;
  std::vector<std::vector<JobStep>> runs{};  ///< the steps of each run
  std::optional<Error> failure{};  ///< of code check_failed: what is wrong with the last numbers, which end with them
};

/// Throws Error(bad_input, "unsupported") for settings that parameter servers do not have.
void require_numbers(const MsJob& job, const RunSpec& run);

/// `run` says what a step is, with numerics. The numbers are computed in children of the process that has loaded the
/// platform. Throws Error(bad_input) as `hcclsim run` with real gradients does.
[[nodiscard]] JobNumerics train_job(const RunSpec& run, const TrainingPlan& plan, const std::vector<TrainingRun>& runs,
                                    sim::Cluster& cluster);

}  // namespace hcclsim::study
