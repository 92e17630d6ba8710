#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim schedule check`: a schedule proved, level by level, or what is wrong with it (docs/checker.md); status 1 if
/// it is refused.
namespace hcclsim::cli {

void add_schedule_check(CLI::App& schedule);

}  // namespace hcclsim::cli
