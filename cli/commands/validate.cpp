#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/validation_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/compare/validate/validate.hpp"

namespace hcclsim::cli {
namespace {

struct ValidateCommand {
  std::vector<std::string> files;
  std::string only;
  std::string format = "text";
};

/// A file in memory in the place of a stream of this process, a child.
class TakenStream {
 public:
  explicit TakenStream(int stream) : file_(::memfd_create("taken", MFD_CLOEXEC)) {
    if (file_ < 0 || ::dup2(file_, stream) < 0) internal_error("cannot take what a command prints");
  }

  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), ' ');
    if (::pread(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      internal_error("cannot read what a command printed");
    }
    return text;
  }

 private:
  int file_;  // until the process ends
};

/// Figures are those of the platform's own settings, not of the user's environment.
void forget_hccl_settings() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with("HCCL_") || text.starts_with("RANK_TABLE_") || text.starts_with("GROUP_INFO_FILE="))
      names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

/// What the command prints to standard output. Runs in a child; files that the command would write are refused.
std::string printed_by(const study::PublishedFigure& figure) {
  forget_hccl_settings();
  const TakenStream printed(STDOUT_FILENO);
  const TakenStream complaint(STDERR_FILENO);
  std::vector<std::string> words{"hcclsim"};
  words.insert(words.end(), figure.command.begin(), figure.command.end());
  words.insert(words.end(), {"--format", "json"});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  const int status = run_command(static_cast<int>(pointers.size()), pointers.data(), WrittenFiles::refused);
  std::fflush(nullptr);
  if (status != 0) {
    bad_input("validation", "{}: [{}] hcclsim {} ended with status {}: {}", figure.place, figure.id,
              fmt::join(figure.command, " "), status, trimmed(complaint.text()));
  }
  return printed.text();
}

bool is_meant(const study::PublishedFigure& figure, const std::string& only) {
  return figure.id.find(only) != std::string::npos || figure.what.find(only) != std::string::npos;
}

void run(const ValidateCommand& command) {
  std::vector<study::PublishedFigure> figures;
  std::set<std::string> ids;
  for (const std::string& file : command.files.empty() ? study::shipped_validation_files() : command.files) {
    for (study::PublishedFigure& figure : study::read_published_figures(file)) {
      if (!ids.insert(figure.id).second) bad_input("validation", "{}: [{}] is there twice", figure.place, figure.id);
      if (is_meant(figure, command.only)) figures.push_back(std::move(figure));
    }
  }
  if (figures.empty()) bad_input("validation", "no published figure{}", command.only.empty() ? "" : " of --only");
  const std::vector<study::ValidatedFigure> validated = study::validate(std::move(figures), printed_by);
  print(command.format == "json"       ? validation_json(validated)
        : command.format == "csv"      ? validation_csv(validated)
        : command.format == "markdown" ? validation_page(validated, command.files.empty())
                                       : validation_text(validated, command.files.empty()));
}

}  // namespace

void add_validate_command(Command& app) {
  app.add_command("validate", "Published measurements beside what is simulated", [](Command& command) {
    const auto options = std::make_shared<ValidateCommand>();
    command.add("FILE", read_files(options->files), "TOML files of published figures [those that come with hcclsim]");
    command.add("--only", text(options->only), "Figures whose name, or what they are, contains this");
    add_format_option(command, options->format, {"text", "json", "csv", "markdown"});
    command.footer(
        "A figure that a constant was taken from is marked as calibration and counts in no mean.\n"
        "Commands of files write nothing: options that name a file to write are refused.\n"
        "Examples:\n"
        "  hcclsim validate\n"
        "  hcclsim validate --only 'single operation' --format csv\n"
        "  hcclsim validate mine.toml --format markdown");
    command.on_run([options] { run(*options); });
  });
}

}  // namespace hcclsim::cli
