#pragma once

#include <string>

#include "study/jobs/job/job.hpp"

/// What became of an MSJob, as `hcclsim job` prints it.
namespace hcclsim::cli {

/// For people, in the words and tables of kubectl: the job, its pods, conditions, events, training, a timeline.
[[nodiscard]] std::string job_text(const study::JobResult& result);
/// All of it for programs (docs/formats.md).
[[nodiscard]] std::string job_json(const study::JobResult& result);
/// The status alone, as `kubectl get -o yaml` has it.
[[nodiscard]] std::string job_yaml(const study::JobResult& result);

/// One sentence: how the job ended, or what it waits for.
[[nodiscard]] std::string job_sentence(const study::JobResult& result);

}  // namespace hcclsim::cli
