#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim schedule generate`: the schedule of any collective as a file.
namespace hcclsim::cli {

void add_schedule_generate(CLI::App& schedule);

}  // namespace hcclsim::cli
