#pragma once

#include <cstdint>
#include "cli/options/training/run_options.hpp"
#include "study/jobs/job/job.hpp"

/// The options of `hcclsim job` as checked values: those of `run` that say what a step is, and its own.
namespace hcclsim::cli {

class Command;

enum class JobFormat : std::uint8_t { text, json, yaml };

struct JobOptions {
  RunOptions run{};
  study::JobSpec spec{};  ///< complete after finish_job_options()
  JobFormat format = JobFormat::text;
};

/// Adds all options to the command. After parsing, finish_job_options() completes what they say.
void add_job_options(Command& command, JobOptions& options);

/// As finish_run_options, with MindSpore's graph unless told otherwise; throws Error(bad_input).
void finish_job_options(Command& command, JobOptions& options);

}  // namespace hcclsim::cli
