#include "cli/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/calibrate.hpp"
#include "cli/collective.hpp"
#include "cli/interruption.hpp"
#include "cli/models.hpp"
#include "cli/output.hpp"
#include "cli/overwriting.hpp"
#include "cli/platform.hpp"
#include "cli/rank_table.hpp"
#include "cli/report/report_command.hpp"
#include "cli/run.hpp"
#include "cli/schedule.hpp"
#include "cli/sweep.hpp"
#include "cli/tune.hpp"
#include "cli/version.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* description = "Simulates the communication of training on Ascend-like NPU clusters.";
constexpr const char* examples =
    "Examples:\n"
    "  hcclsim run --trace timeline.json            ResNet50 on eight 910A; open the file in ui.perfetto.dev\n"
    "  hcclsim platform show atlas800t-a2           servers, links and their speeds\n"
    "  hcclsim models show resnet50 --gradients     gradients in production order\n\n";
constexpr const char* exit_statuses =
    "Exit status: 0 ok, 1 a check or comparison failed, 2 usage or bad input, 3 the simulated\n"
    "cluster failed (deadlock, time-out, NPU out of memory), 4 internal error.";

/// Help that shows what an option accepts and its default: "--batch 1..65536 [32]".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string accepted = option->get_type_name();
    if (accepted.starts_with(':')) accepted.erase(0, 1);  // no type, only the description of a check
    std::string text = accepted.empty() ? "" : ' ' + accepted;
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + ']';
    if (option->get_required()) text += " REQUIRED";
    return option->get_type_size() == 0 ? "" : text;
  }
};

/// A standard stream that the caller closed would be given to the next file that is opened. It is filled with a file
/// that cannot be written, so that printing fails as it should.
void fill_closed_streams() {
  while (true) {
    const int file = ::open("/dev/null", O_RDONLY);
    if (file > STDERR_FILENO || file < 0) {
      if (file >= 0) ::close(file);
      return;
    }
  }
}

/// The command as it was given, for a shell: what changes it in the environment first.
std::string shell_words(int argc, char** argv) {
  std::string words;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view setting = *variable;
    const std::size_t equals = setting.find('=');
    if (!setting.starts_with("HCCL_") && !setting.starts_with("RANK_TABLE_FILE=")) continue;
    words += fmt::format("{}={} ", setting.substr(0, equals), shell_word(setting.substr(equals + 1)));
  }
  words += "hcclsim";
  for (int i = 1; i < argc; ++i) words += ' ' + shell_word(argv[i]);
  return words;
}

int report(ErrorCode code, const std::string& message) {
  std::fflush(stdout);  // what was printed before comes first
  fmt::print(stderr, "hcclsim: error: {}\n", message);
  return static_cast<int>(code);
}

/// The sub-command that was named last, such as `platform show`; the app itself if none.
const CLI::App& named_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : named_command(*commands.back());
}

/// "hcclsim platform show".
std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + ' ' + app.get_name();
}

/// The words before the command's own name in its usage line.
std::string parent_name(const CLI::App& app) { return app.get_parent() == nullptr ? "" : full_name(*app.get_parent()); }

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

/// Says what an argument that nobody took may have meant.
std::string unexpected_argument(const CLI::App& command, const std::string& argument) {
  if (argument.starts_with('-')) {
    const std::string name = argument.substr(0, argument.find('='));
    return fmt::format("unknown option {}{}", name, did_you_mean(name, option_names(command)));
  }
  const auto commands = command_names(command);
  if (commands.empty()) return fmt::format("unexpected argument '{}'", argument);
  return fmt::format("unknown command '{}'{}; commands: {}", argument, did_you_mean(argument, commands),
                     fmt::join(commands, ", "));
}

/// Reports a failure to parse the arguments. CLI11 also ends a successful --help or --version in this way.
int report(const CLI::ParseError& error, CLI::App& app) {
  const CLI::App& command = named_command(app);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    const bool wants_version = dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr;
    print(wants_version ? fmt::format("hcclsim {}\n", version()) : command.help(parent_name(command)));
    return 0;
  }
  const auto unexpected = app.remaining(true);
  const auto commands = command_names(command);
  std::string message = error.what();
  if (!unexpected.empty()) {
    message = unexpected_argument(command, unexpected.front());
  } else if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    message = fmt::format("a command is required; commands: {}", fmt::join(commands, ", "));
  }
  return report(ErrorCode::bad_input, fmt::format("{}\nSee '{} --help'.", message, full_name(command)));
}

/// Every command looks at its files before it does anything.
void look_at_files(CLI::App& app) {
  app.parse_complete_callback([&app] { refuse_overwriting(app); });
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) look_at_files(*command);
}

}  // namespace

int run_command(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of the write, not the end of the process
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow
  fill_closed_streams();
  CLI::App app(description, "hcclsim");
  try {
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string(version()));
    app.footer(exit_statuses);  // sub-commands inherit it
    app.formatter(std::make_shared<HelpFormatter>());
    add_run_command(app);
    add_tune_command(app);
    add_sweep_command(app);
    add_platform_command(app);
    add_rank_table_command(app);
    add_models_command(app);
    add_collective_command(app);
    add_calibrate_command(app);
    add_schedule_command(app);
    add_report_command(app, shell_words(argc, argv));
    app.footer(std::string(examples) + exit_statuses);
    look_at_files(app);
    app.parse(argc, argv);
    print("");  // what commands printed themselves must have arrived
    return 0;
  } catch (const Interrupted& interruption) {
    return interruption.exit_status();
  } catch (const CLI::ParseError& error) {
    try {
      return report(error, app);
    } catch (const Error& output_error) {
      return report(output_error.code(), output_error.what());
    }
  } catch (const Error& error) {
    return report(error.code(), error.what());
  } catch (const std::exception& error) {
    return report(ErrorCode::internal, error.what());
  }
}

}  // namespace hcclsim::cli
