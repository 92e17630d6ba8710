#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/option_table.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {

void add_options_command(Command& app) {
  Command& options = app.add_command("options", "All commands and options as JSON, for programs that call hcclsim");
  options.footer(
      "Examples:\n"
      "  hcclsim options > options.json");
  options.on_run([&app] {
    app.declare_all();
    print(option_table(app).dump(1) + '\n');
  });
}

}  // namespace hcclsim::cli
