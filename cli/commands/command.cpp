#include "cli/commands/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/memory_file_name.hpp"
#include "base/text.hpp"
#include "base/user_error.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/version.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* description = "Simulates the communication of training on Ascend-like NPU clusters.";
constexpr const char* app_examples =
    "Examples:\n"
    "  hcclsim run --trace timeline.json            ResNet50 on eight 910A; open the file in ui.perfetto.dev\n"
    "  hcclsim platform show atlas800t-a2           servers, links and their speeds\n"
    "  hcclsim models show resnet50 --gradients     gradients in production order\n\n";
constexpr const char* exit_statuses =
    "Exit status: 0 ok, 1 a check or comparison failed, 2 usage or bad input, 3 the simulated\n"
    "cluster failed (deadlock, time-out, NPU out of memory), 4 internal error.";

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

int report(const Error& error) {
  std::fflush(stdout);  // what was printed before comes first
  const std::string message = without_memory_files(error.what());
  const int status = static_cast<int>(error.code());
  print_apart(messages_are_json()
                  ? json_message("error", {{"kind", error.kind()}, {"status", status}, {"message", message}})
                  : fmt::format("hcclsim: error: {}\n", message));
  return status;
}

}  // namespace

int run_command(int argc, char** argv, WrittenFiles files) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is found by the write, behind files that are finished
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow
  fill_closed_streams();
  // A program that reads messages waits for the result: nobody wants it when that program has ended, killed or not.
  if (messages_are_json()) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    Command app("hcclsim", description);
    app.require_command();
    if (files == WrittenFiles::refused) app.refuse_written_files();
    app.version(std::string(version()));
    app.footer(exit_statuses);  // sub-commands inherit it
    add_run_command(app);
    add_plan_command(app);
    add_context_command(app);
    add_tune_command(app);
    add_search_command(app);
    add_sweep_command(app);
    add_job_command(app);
    add_platform_command(app);
    add_rank_table_command(app);
    add_models_command(app);
    add_collective_command(app);
    add_exec_command(app);
    add_calibrate_command(app);
    add_validate_command(app);
    add_schedule_command(app);
    add_replay_command(app);
    add_report_command(app, shell_words(argc, argv));
    add_script_command(app);
    add_doctor_command(app);
    add_completion_commands(app);
    add_options_command(app);
    app.footer(std::string(app_examples) + exit_statuses);
    // What commands printed themselves must have arrived.
    print(app.parse({argv + std::min(argc, 1), argv + argc}).value_or(""));
    return 0;
  } catch (const Interrupted& interruption) {
    return interruption.exit_status();
  } catch (const Error& error) {
    if (error.kind() == "pipe") return 128 + SIGPIPE;  // as if the signal had ended it
    return report(error);
  } catch (const std::exception& error) {
    return report(user_error(error).value_or(Error(ErrorCode::internal, "internal", error.what())));
  }
}

}  // namespace hcclsim::cli
