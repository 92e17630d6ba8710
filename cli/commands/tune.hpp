#pragma once

#include <memory>

#include "cli/html/html_report.hpp"

/// `hcclsim tune`: the best gradient split of a training step, with its proof, what others would do, and both confirmed
/// by simulation.
namespace hcclsim::cli {

class Command;

void add_tune_command(Command& app);

/// Makes a command do what `hcclsim tune` does, and write its report where `html` says when it is called; null: none.
void set_up_tune(Command& command, const std::shared_ptr<const HtmlReport>& html);

}  // namespace hcclsim::cli
