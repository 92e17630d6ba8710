#include "cli/options/failure_options.hpp"

#include <cstdint>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/values.hpp"

namespace hcclsim::cli {
void add_failure_options(Command& command, FailureOptions& options) {
  study::FailureSpec& spec = options.spec;
  command.begin_group("A job of days");
  command
      .add("--mtbf", parsed(positive_duration, spec.npu_mtbf),
           "Mean time between failures of an NPU with its share of all else, such as 50000h: also simulate a job of "
           "such steps with failures, checkpoints and restarts")
      .value_name("TIME");
  command
      .add("--checkpoint-every", whole_number(spec.checkpoint_every, 1, 1'000'000'000),
           "Steps between checkpoints, for which all ranks wait: shown where they fall within --iterations, and of the "
           "job "
           "of --mtbf (default there: Daly's interval)")
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
  const bool fails = origins.given("mtbf");
  for (const char* const key : {"mtbf", "checkpoint-every"}) {
    if (!spec.parallel.forward_only || !origins.given(key)) continue;
    bad_input("option", "{} is of training: it does not go with --forward-only", origins.name(key));
  }
  if (const auto every = options.spec.checkpoint_every; every.has_value()) {
    if (!origins.given("checkpoint-bandwidth")) {
      bad_input("option", "{} needs --checkpoint-bandwidth, too", origins.name("checkpoint-every"));
    }
    // Of a job of days the steps that are simulated need not have one.
    if (!fails || *every <= spec.iterations) {
      spec.host.checkpoints = {.every = static_cast<std::uint32_t>(*every),
                               .bandwidth = options.spec.checkpoint_bandwidth};
    }
  } else if (origins.given("checkpoint-bandwidth") && !fails) {
    bad_input("option", "{} needs --checkpoint-every, or --mtbf", origins.name("checkpoint-bandwidth"));
  }
  if (!fails) {
    for (const char* const key : {"restart-time", "job-time", "job-runs"}) {
      if (origins.given(key)) bad_input("option", "{} is of a job with failures: give --mtbf too", origins.name(key));
    }
    return;
  }
  for (const char* const key : {"checkpoint-bandwidth", "restart-time"}) {
    if (!origins.given(key)) bad_input("option", "{} needs --{}, too", origins.name("mtbf"), key);
  }
  spec.failures = options.spec;
  spec.failures->seed = spec.skew.seed;
}

}  // namespace hcclsim::cli
