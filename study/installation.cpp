#include "study/installation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/simgrid_module.hpp"
#include "study/shipped_platforms.hpp"

namespace hcclsim::study {
namespace {

namespace fs = std::filesystem;

struct NeededProgram {
  std::string_view name;
  std::string_view needed_for;
};
constexpr std::array<NeededProgram, 8> programs{{{"sbatch", "hcclsim sweep submit: sweeps on Slurm"},
                                                 {"squeue", "hcclsim sweep submit: sweeps on Slurm"},
                                                 {"python3", "the Python packages"},
                                                 {"cmake", "building hcclsim, and programs that use it as a library"},
                                                 {"g++", "building hcclsim, and programs that use it as a library"},
                                                 {"ccache", "building hcclsim again in less time"},
                                                 {"man", "the manual page hcclsim(1)"},
                                                 {"pj_dump", "looking at --trace FILE.paje"}}};

/// Where a program is found; empty: nowhere.
std::string place_of_program(std::string_view name) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no thread changes it
  for (const std::string_view folder : split_trimmed(path == nullptr ? "" : path, ':')) {
    const std::string file = fmt::format("{}/{}", folder, name);
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

InstalledPart platform_files() {
  InstalledPart part{.name = "platform files",
                     .required = true,
                     .detail = {},
                     .needed_for = "names of --platform, such as atlas800-9000"};
  try {
    part.detail = fmt::format("{} in {}", shipped_platforms().size(), platform_folder());
    if (shipped_platforms().empty()) part.status = PartStatus::missing;
  } catch (const Error& error) {
    part.status = PartStatus::missing;
    part.detail = error.what();
  }
  return part;
}

InstalledPart simgrid() {
  InstalledPart part{.name = "SimGrid module",
                     .detail = "loaded",
                     .needed_for = "--network simgrid, and platform files that only SimGrid reads"};
  try {
    static_cast<void>(sim::simgrid_module());
  } catch (const Error& error) {
    part.status = PartStatus::broken;
    part.detail = error.what();
  }
  return part;
}

InstalledPart temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  const bool writable = !error && ::access(folder.c_str(), W_OK) == 0;
  return {.name = "temporary files",
          .status = writable ? PartStatus::ok : PartStatus::broken,
          .detail = error ? error.message() : folder.string() + (writable ? "" : " cannot be written"),
          .needed_for = "sweeps"};
}

}  // namespace

std::string_view name_of(PartStatus status) {
  if (status == PartStatus::ok) return "ok";
  return status == PartStatus::missing ? "missing" : "broken";
}

std::vector<InstalledPart> examine_installation() {
  std::vector<InstalledPart> parts{platform_files(), simgrid(), temporary_folder()};
  for (const NeededProgram& program : programs) {
    std::string place = place_of_program(program.name);
    const PartStatus status = place.empty() ? PartStatus::missing : PartStatus::ok;
    parts.push_back({.name = std::string(program.name),
                     .status = status,
                     .detail = place.empty() ? "not in PATH" : std::move(place),
                     .needed_for = std::string(program.needed_for)});
  }
  return parts;
}

bool is_complete(const std::vector<InstalledPart>& parts) {
  return std::ranges::all_of(parts,
                             [](const InstalledPart& part) { return !part.required || part.status == PartStatus::ok; });
}

}  // namespace hcclsim::study
