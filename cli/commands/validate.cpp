#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/output.hpp"
#include "cli/print/validation_report.hpp"
#include "study/validate/validate.hpp"

namespace hcclsim::cli {
namespace {

struct ValidateCommand {
  std::vector<std::string> files;
  std::string only;
  std::string format = "text";
};

/// What the command prints to standard output, which in this process, a child, is no longer its own.
std::string printed_by(const study::PublishedFigure& figure) {
  const int printed = ::memfd_create("printed", MFD_CLOEXEC);
  if (printed < 0 || ::dup2(printed, STDOUT_FILENO) < 0) internal_error("cannot take what a command prints");
  std::vector<std::string> words{"hcclsim"};
  words.insert(words.end(), figure.command.begin(), figure.command.end());
  words.insert(words.end(), {"--format", "json"});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  const int status = run_command(static_cast<int>(pointers.size()), pointers.data());
  std::fflush(stdout);
  if (status != 0) {
    bad_input("validation", "{}: [{}] hcclsim {} ended with status {}", figure.place, figure.id,
              fmt::join(figure.command, " "), status);
  }
  std::string text(static_cast<std::size_t>(::lseek(printed, 0, SEEK_END)), ' ');
  if (::pread(printed, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    internal_error("cannot read what a command printed");
  }
  return text;
}

bool is_meant(const study::PublishedFigure& figure, const std::string& only) {
  return figure.id.find(only) != std::string::npos || figure.what.find(only) != std::string::npos;
}

void run(const ValidateCommand& command) {
  std::vector<study::PublishedFigure> figures;
  for (const std::string& file : command.files.empty() ? study::shipped_validation_files() : command.files) {
    for (study::PublishedFigure& figure : study::read_published_figures(file)) {
      if (is_meant(figure, command.only)) figures.push_back(std::move(figure));
    }
  }
  if (figures.empty()) bad_input("validation", "no published figure{}", command.only.empty() ? "" : " of --only");
  const std::vector<study::ValidatedFigure> validated = study::validate(std::move(figures), printed_by);
  print(command.format == "json"       ? validation_json(validated)
        : command.format == "csv"      ? validation_csv(validated)
        : command.format == "markdown" ? validation_page(validated)
                                       : validation_text(validated));
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
        "Examples:\n"
        "  hcclsim validate\n"
        "  hcclsim validate --only 'single operation' --format csv\n"
        "  hcclsim validate mine.toml");
    command.on_run([options] { run(*options); });
  });
}

}  // namespace hcclsim::cli
