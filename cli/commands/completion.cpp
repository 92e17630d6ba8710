#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/option_table.hpp"
#include "cli/print/output.hpp"
#include "cli/print/shell_completion.hpp"

namespace hcclsim::cli {

void add_completion_command(Command& app) {
  Command& completion =
      app.add_command("completion", "A script by which a shell completes this command, or its manual");
  const auto shell = std::make_shared<std::string>();
  completion
      .add("SHELL", one_of({"bash", "zsh", "fish", "man"}, [shell](const std::string& word) { *shell = word; }),
           "bash, zsh or fish; man: the page hcclsim(1) in roff")
      .required();
  completion.footer(
      "Examples:\n"
      "  hcclsim completion bash > ~/.local/share/bash-completion/completions/hcclsim\n"
      "  hcclsim completion man | man -l -");
  completion.on_run([&app, shell] {
    app.declare_all();
    const Json table = option_table(app);
    print(*shell == "bash"   ? bash_completion(table)
          : *shell == "zsh"  ? zsh_completion(table)
          : *shell == "fish" ? fish_completion(table)
                             : manual_page(table, std::string(version())));
  });
}

}  // namespace hcclsim::cli
