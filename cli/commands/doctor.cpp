#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/commands/command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/output.hpp"
#include "study/installation.hpp"

namespace hcclsim::cli {
namespace {

std::string doctor_text(const std::vector<study::InstalledPart>& parts) {
  Table table("<part|<status|<what|<needed for");
  for (const study::InstalledPart& part : parts) {
    table.add_row({part.name, std::string(name_of(part.status)), part.detail, part.needed_for});
  }
  return fmt::format("hcclsim {}\n\n{}", version(), table.to_string());
}

std::string doctor_json(const std::vector<study::InstalledPart>& parts) {
  Json rows = Json::array();
  for (const study::InstalledPart& part : parts) {
    rows.push_back(Json::object({{"name", part.name},
                                 {"status", name_of(part.status)},
                                 {"required", part.required},
                                 {"detail", part.detail},
                                 {"needed_for", part.needed_for}}));
  }
  return Json::object({{"version", version()}, {"parts", rows}, {"complete", is_complete(parts)}}).dump(2) + '\n';
}

}  // namespace

void add_doctor_command(Command& app) {
  Command& doctor = app.add_command("doctor", "What of hcclsim, and of what it works with, is installed here");
  const auto format = std::make_shared<std::string>("text");
  add_format_option(doctor, *format, {"text", "json"});
  doctor.footer(
      "Examples:\n"
      "  hcclsim doctor\n\n"
      "Exit status 1 if something is missing that nothing works without.");
  doctor.on_run([format] {
    const std::vector<study::InstalledPart> parts = study::examine_installation();
    print(*format == "json" ? doctor_json(parts) : doctor_text(parts));
    if (!is_complete(parts)) {
      throw Error(ErrorCode::check_failed, "installation", "hcclsim is not installed completely");
    }
  });
}

}  // namespace hcclsim::cli
