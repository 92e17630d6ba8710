#pragma once

#include <memory>

#include "cli/html/html_report.hpp"

/// `hcclsim collective`: measures a collective as HCCL's test tool hccl_test does, with its options and its table.
namespace hcclsim::cli {

class Command;

void add_collective_command(Command& app);

/// Makes a command do what `hcclsim collective` does, and write its report where `html` says when it is called; null:
/// none.
void set_up_collective(Command& command, const std::shared_ptr<const HtmlReport>& html);

}  // namespace hcclsim::cli
