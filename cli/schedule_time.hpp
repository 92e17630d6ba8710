#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim schedule time`: how long schedules take on a platform, each alone and all at the same time, and what limits
/// them.
namespace hcclsim::cli {

void add_schedule_time(CLI::App& schedule);

}  // namespace hcclsim::cli
