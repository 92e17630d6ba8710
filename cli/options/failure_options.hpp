#pragma once

#include "cli/options/parse/origins.hpp"
#include "study/goodput/goodput.hpp"
#include "study/run/spec.hpp"

/// Options of `hcclsim run` that have to do with a job that runs for days. All of them are refused without --mtbf.
namespace hcclsim::cli {

inline constexpr const char* failure_group = "A job of days";

struct FailureOptions {
  study::FailureSpec spec{.length = 30 * 86400., .runs = 20};
};

void add_failure_options(Command& command, FailureOptions& options);

/// Throws Error(bad_input, "option").
void finish_failure_options(const OptionOrigins& origins, const FailureOptions& options, study::RunSpec& spec);

}  // namespace hcclsim::cli
