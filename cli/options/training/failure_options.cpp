#include "cli/options/training/failure_options.hpp"

#include <array>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/values.hpp"

namespace hcclsim::cli {
namespace {

constexpr Seconds default_length = 30. * 86400;
constexpr std::uint32_t default_runs = 20;

/// Those that the steps write which are simulated. Of a job of days these need not have one.
void add_checkpoints(const OptionOrigins& origins, const FailureOptions& options, study::RunSpec& spec) {
  const bool fails = options.npu_mtbf.has_value();
  if (!options.checkpoint_every.has_value()) {
    if (options.checkpoint_bandwidth.has_value() && !fails) {
      bad_input("option", "{} needs --checkpoint-every, or --mtbf", origins.name("checkpoint-bandwidth"));
    }
    return;
  }
  if (!options.checkpoint_bandwidth.has_value()) {
    bad_input("option", "{} needs --checkpoint-bandwidth, too", origins.name("checkpoint-every"));
  }
  if (fails && *options.checkpoint_every > spec.simulation.iterations) return;
  spec.step.checkpoints = {.every = static_cast<std::uint32_t>(*options.checkpoint_every),
                           .bandwidth = *options.checkpoint_bandwidth};
}

}  // namespace

void add_failure_options(Command& command, FailureOptions& options) {
  command.begin_group(failure_group);
  command
      .add("--mtbf", parsed(positive_duration, options.npu_mtbf),
           "Mean time between failures of an NPU with its share of all else, such as 50000h: also simulate a job of "
           "such steps with failures, checkpoints and restarts")
      .value_name("TIME");
  command
      .add("--checkpoint-every", whole_number(options.checkpoint_every, 1, 1'000'000'000),
           "Steps between checkpoints, for which all ranks wait: shown where they fall within --iterations, and of the "
           "job of --mtbf (default there: Daly's interval)")
      .value_name("N");
  command
      .add("--checkpoint-bandwidth", parsed(positive_bandwidth, options.checkpoint_bandwidth),
           "At which a rank writes its weights and optimizer state, such as 1GBps")
      .value_name("SPEED");
  command
      .add("--restart-time", parsed(positive_duration, options.restart),
           "From a failure to the first step behind it, such as 10m")
      .value_name("TIME");
  command
      .add("--job-time", parsed(positive_duration, options.length), "That the steps of the job take without failures")
      .value_name("TIME")
      .with_default("30d");
  command
      .add("--job-runs", whole_number(options.runs, 1, 10000),
           "Simulated runs of the job, each with failures of its own")
      .with_default(std::to_string(default_runs));
}

void finish_failure_options(const OptionOrigins& origins, const FailureOptions& options, study::RunSpec& spec) {
  spec.failures.reset();
  const bool fails = options.npu_mtbf.has_value();
  for (const auto& [key, given] :
       {std::pair{"mtbf", fails}, std::pair{"checkpoint-every", options.checkpoint_every.has_value()}}) {
    if (!spec.step.shape.forward_only || !given) continue;
    bad_input("option", "{} is of training: it does not go with --forward-only", origins.name(key));
  }
  add_checkpoints(origins, options, spec);
  if (!fails) {
    for (const char* const key : {"restart-time", "job-time", "job-runs"}) {
      if (origins.asks(key)) bad_input("option", "{} is of a job with failures: give --mtbf too", origins.name(key));
    }
    return;
  }
  const auto require = [&](bool given, const char* key) {
    if (!given) bad_input("option", "{} needs --{}, too", origins.name("mtbf"), key);
  };
  require(options.checkpoint_bandwidth.has_value(), "checkpoint-bandwidth");
  require(options.restart.has_value(), "restart-time");
  spec.failures = {.npu_mtbf = *options.npu_mtbf,
                   .checkpoint_every = options.checkpoint_every,
                   .checkpoint_bandwidth = *options.checkpoint_bandwidth,
                   .restart = *options.restart,
                   .length = options.length.value_or(default_length),
                   .runs = options.runs.value_or(default_runs),
                   .seed = spec.skew.seed};
}

}  // namespace hcclsim::cli
