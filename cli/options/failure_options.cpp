#include "cli/options/failure_options.hpp"

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/values.hpp"

namespace hcclsim::cli {
void add_failure_options(Command& command, FailureOptions& options) {
  study::FailureSpec& spec = options.spec;
  command.begin_group(failure_group);
  command
      .add("--mtbf", parsed(positive_duration, spec.npu_mtbf),
           "Mean time between failures of an NPU with its share of all else, such as 50000h: also simulate a job of "
           "such steps with failures, checkpoints and restarts")
      .value_name("TIME");
  command
      .add("--checkpoint-every", whole_number(spec.checkpoint_every, 1, 1'000'000'000),
           "Steps between checkpoints, for which all ranks wait (default: Daly's interval)")
      .value_name("N");
  command
      .add("--checkpoint-bandwidth", parsed(positive_bandwidth, spec.checkpoint_bandwidth),
           "At which a rank writes its weights and optimizer state, such as 1GBps")
      .value_name("SPEED");
  command
      .add("--restart-time", parsed(positive_duration, spec.restart),
           "From a failure to the first step behind it, such as 10m")
      .value_name("TIME");
  command
      .add("--job-time", parsed(positive_duration, spec.length),
           "That the steps of the job take without failures (30d)")
      .value_name("TIME");
  command
      .add("--job-runs", whole_number(spec.runs, 1, 10000), "Simulated runs of the job, each with failures of its own")
      .with_default();
}

void finish_failure_options(const OptionOrigins& origins, const FailureOptions& options, study::RunSpec& spec) {
  spec.failures.reset();
  if (origins.command().find("--mtbf") == nullptr) return;  // the command has none of these options
  if (!origins.given("mtbf")) {
    for (const char* const key : {"checkpoint-every", "checkpoint-bandwidth", "restart-time", "job-time", "job-runs"}) {
      if (origins.given(key)) bad_input("option", "{} is of a job with failures: give --mtbf too", origins.name(key));
    }
    return;
  }
  for (const char* const key : {"checkpoint-bandwidth", "restart-time"}) {
    if (!origins.given(key)) bad_input("option", "{} needs --{}, too", origins.name("mtbf"), key);
  }
  if (spec.parallel.forward_only) {
    bad_input("option", "{} is of training: it does not go with --forward-only", origins.name("mtbf"));
  }
  spec.failures = options.spec;
  spec.failures->seed = spec.skew.seed;
}

}  // namespace hcclsim::cli
