#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim schedule diff`: what differs between two schedules, in structure and in time on a platform.
namespace hcclsim::cli {

void add_schedule_diff(CLI::App& schedule);

}  // namespace hcclsim::cli
