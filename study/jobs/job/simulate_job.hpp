#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "study/jobs/job/cluster/job_state.hpp"
#include "study/jobs/job/cluster/nodes.hpp"
#include "study/jobs/job/cluster/servers.hpp"
#include "study/jobs/job/failures.hpp"
#include "study/jobs/job/training.hpp"

/// A job on servers, from its creation to its end: a state machine in simulated time, without SimGrid.
namespace hcclsim::study {

struct JobScenario {
  TrainingPlan plan{};
  PodDelays delays{};
  PodPacking packing = PodPacking::pack;
  bool gang = false;  ///< gang scheduling, also without a schedulingPolicy
  std::vector<JobFailure> failures{};
  Seconds until = 30.0 * 86400;  ///< nothing is simulated after this date
};

enum class JobEnding : std::uint8_t {
  finished,     ///< the job has ended
  stuck,        ///< it has not, and nothing is left to happen
  out_of_time,  ///< it has not before JobScenario::until
};

struct JobOutcome {
  JobStatus status;
  JobCounters counters;
  bool deleted = false;  ///< the job, after its time to live
  std::deque<Pod> pods;  ///< all that there have been, in the order of their creation
  std::vector<JobService> services;
  std::optional<PodGroup> pod_group;
  std::vector<JobEvent> events;
  std::vector<TrainingRun> runs;
  Seconds end = 0;  ///< date of the last thing that happened; JobScenario::until if something was still under way
  JobEnding ending = JobEnding::finished;
  std::vector<std::string> waits{};  ///< what a job that has not ended waits for: sentences
};

/// Throws Error(bad_input, "option") for a failure of something that is not there, and what `step_time` throws.
[[nodiscard]] JobOutcome simulate_job(const MsJob& job, const std::vector<JobServer>& servers,
                                      const JobScenario& scenario, const StepTime& step_time);

}  // namespace hcclsim::study
