#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/version.hpp"
#include "clients/exec.hpp"
#include "study/installation.hpp"

namespace hcclsim::cli {
namespace {

std::string text_of(const std::vector<study::InstalledPart>& parts) {
  Table table("<|<part|<found|<for");
  for (const study::InstalledPart& part : parts) {
    table.add_row({part.works ? "ok" : part.needed ? "MISSING" : "-", part.name, part.found, part.purpose});
  }
  std::string text = table.to_string();
  for (const study::InstalledPart& part : parts) {
    if (!part.works) text += fmt::format("{}: {}\n", part.name, part.remedy);
  }
  return text;
}

Json json_of(const std::vector<study::InstalledPart>& parts) {
  Json rows = Json::array();
  for (const study::InstalledPart& part : parts) {
    rows.push_back(Json::object({{"name", part.name},
                                 {"works", part.works},
                                 {"needed", part.needed},
                                 {"found", part.found},
                                 {"purpose", part.purpose},
                                 {"remedy", part.works ? Json(nullptr) : Json(part.remedy)}}));
  }
  return Json::object({{"format_version", 1}, {"version", std::string(version())}, {"parts", rows}});
}

}  // namespace

void add_doctor_command(Command& app) {
  Command& command = app.add_command("doctor", "What is installed and works, what is missing, and what to do about it");
  const auto format = std::make_shared<std::string>("text");
  add_format_option(command, *format, {"text", "json"});
  command.footer(
      "Exit status 1: something is missing that every user needs.\n"
      "Examples:\n"
      "  hcclsim doctor");
  command.on_run([format] {
    std::vector<study::InstalledPart> parts = study::installed_parts();
    parts.push_back(
        study::tried({.name = "clients",
                      .purpose = "programs for hcclsim exec: libhccl, libascendcl, libmpi and their headers",
                      .remedy = "install hcclsim anew"},
                     clients::compiler_flags));
    print(*format == "json" ? json_of(parts).dump(2) + '\n' : text_of(parts));
    for (const study::InstalledPart& part : parts) {
      if (part.needed && !part.works) {
        throw Error(ErrorCode::check_failed, "installation",
                    fmt::format("{} does not work: {}", part.name, part.remedy));
      }
    }
  });
}

}  // namespace hcclsim::cli
