#pragma once

#include <memory>

#include "cli/html/html_report.hpp"

namespace hcclsim::cli {

class Command;

/// Adds `hcclsim run`: simulates data-parallel training and prints when everything happened. The platform is loaded in
/// a child process (base/child_process.hpp), which simulates what was asked for and starts further children for what
/// the text form compares it with.
void add_run_command(Command& app);

/// Makes a command do what `hcclsim run` does, and write its report where `html` says when it is called; null: none.
void set_up_run(Command& command, const std::shared_ptr<const HtmlReport>& html);

}  // namespace hcclsim::cli
