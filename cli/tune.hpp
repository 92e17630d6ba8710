#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/report/html_report.hpp"

/// `hcclsim tune`: the best gradient split of a training step, with its proof, what others would do, and both confirmed
/// by simulation.
namespace hcclsim::cli {

void add_tune_command(CLI::App& app);

/// Makes a command do what `hcclsim tune` does, and write its report where `html` says when it is called; null: none.
void set_up_tune(CLI::App* command, const std::shared_ptr<const HtmlReport>& html);

}  // namespace hcclsim::cli
