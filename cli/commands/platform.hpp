#pragma once

namespace CLI {
class App;
}

namespace hcclsim::cli {

class Command;

/// Adds `platform list | show | check | generate`: the platform files, what they hold, what is wrong with them, and new
/// ones. The commands print to standard output and throw hcclsim::Error.
void add_platform_command(Command& app);

}  // namespace hcclsim::cli
