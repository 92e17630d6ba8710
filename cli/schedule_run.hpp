#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim schedule run`: a schedule executed on real data and compared with what its operation asks for.
namespace hcclsim::cli {

void add_schedule_run(CLI::App& schedule);

}  // namespace hcclsim::cli
