#pragma once

#include <string>

/// `hcclsim report`: what another command finds, as one HTML file to look at, to print and to send. `report run` and
/// its like take all that the command takes, print what it prints and write the file besides.
namespace hcclsim::cli {

class Command;

/// `command_line`: the command as it was given, for a shell.
void add_report_command(Command& app, const std::string& command_line);

}  // namespace hcclsim::cli
