#include "study/platform/shipped_platforms.hpp"

#include <fmt/ranges.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/memory_file.hpp"
#include "base/memory_file_name.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "sim/platform/catalog.hpp"
#include "sim/platform/generate.hpp"

namespace hcclsim::study {
namespace fs = std::filesystem;

std::string platform_folder() {
  std::error_code ignored;
  // The environment is read once per command, before any thread exists.
  if (const char* const set = std::getenv("HCCLSIM_PLATFORMS");
      set != nullptr && *set != '\0') {  // NOLINT(concurrency-mt-unsafe)
    if (fs::is_directory(set, ignored)) return set;
    bad_input("platform", "HCCLSIM_PLATFORMS is '{}', which is not a folder", set);
  }
  const fs::path installed = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "../share/hcclsim/platforms";
  for (const fs::path& folder : {installed, fs::path(HCCLSIM_PLATFORM_DIR)}) {
    if (fs::is_directory(folder, ignored)) return folder.lexically_normal();
  }
  bad_input("platform",
            "the folder of the platform files is not found (tried {} and {}): set HCCLSIM_PLATFORMS to it, or give the "
            "path of a file",
            installed.lexically_normal().string(), HCCLSIM_PLATFORM_DIR);
}

std::vector<std::string> shipped_platforms() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(platform_folder())) {
    if (entry.path().extension() == ".xml") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

/// The shipped file of that name, with or without ".xml"; empty if there is none.
std::string shipped_file(const fs::path& name) {
  std::error_code ignored;
  const fs::path shipped = fs::path(platform_folder()) / name;
  for (const fs::path& candidate : {fs::path(shipped.string() + ".xml"), shipped}) {
    if (candidate.extension() == ".xml" && fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return {};
}

/// "910B2:16" as servers and their NPUs, in as few super-pods as hold them; nothing for a name that is none of these.
std::optional<sim::PlatformOptions> servers_named(const std::string& name) {
  const std::size_t mark = name.find(':');
  if (mark == std::string::npos || name.find('/') != std::string::npos) return std::nullopt;
  const auto servers = parse_number<std::uint32_t>(name.substr(mark + 1));
  if (!servers.has_value()) return std::nullopt;
  sim::PlatformOptions options{.soc = name.substr(0, mark), .servers = *servers};
  const std::uint32_t most = sim::find_soc_entry(options.soc).server->max_servers;
  if (most == 0 || options.servers <= most) return options;
  const std::uint32_t pods = (options.servers + most - 1) / most;
  for (std::uint32_t pod = 0; pod < pods; ++pod) {
    options.super_pods.push_back(options.servers / pods + (pod < options.servers % pods ? 1 : 0));
  }
  return options;
}

}  // namespace

std::string find_platform(const std::string& platform) {
  std::error_code ignored;
  const fs::path path(platform);
  const bool plain_name = !path.has_parent_path() && path.extension() != ".xml";
  if (plain_name && platform != "-") {
    if (std::string shipped = shipped_file(path); !shipped.empty()) return shipped;
  }
  if (const auto servers = servers_named(platform); servers.has_value() && !fs::exists(path, ignored)) {
    return MemoryFile(sim::generate_platform(*servers), platform).keep();
  }
  const fs::file_status status = platform == "-" ? fs::file_status(fs::file_type::fifo) : fs::status(path, ignored);
  if (fs::is_regular_file(status)) return platform;
  // SimGrid reads a platform from a path, and more than once.
  if (fs::is_fifo(status)) return MemoryFile(read_text_file(platform, "platform")).keep();
  if (fs::exists(status)) {
    bad_input("platform", "platform '{}' is no file but a {}", platform,
              fs::is_directory(status) ? "folder" : "device or socket");
  }
  if (!path.has_parent_path()) {
    if (std::string shipped = shipped_file(path); !shipped.empty()) return shipped;
  }
  const std::vector<std::string> names = shipped_platforms();
  const std::string name = path.extension() == ".xml" ? path.stem().string() : path.filename().string();
  bad_input("platform",
            "platform '{}' is neither a file nor the name of a shipped one{}; 910B2:16 is 16 servers of that NPU, "
            "shipped are: {}",
            platform, did_you_mean(name, names), fmt::join(names, ", "));
}

std::string platform_name(const std::string& file) {
  return is_memory_file(file) ? memory_file_title(file) : fs::path(file).filename().string();
}

std::vector<std::string> platforms_like(const std::string& pattern) {
  std::vector<std::string> found;
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  glob_t paths{};
  if (::glob(pattern.c_str(), 0, nullptr, &paths) == 0) {
    for (std::size_t i = 0; i < paths.gl_pathc; ++i) {
      found.emplace_back(paths.gl_pathv[i]);  // NOLINT(cppcoreguidelines-pro-bounds-pointer-arithmetic): C's list
    }
  }
  ::globfree(&paths);
  if (!found.empty()) return found;
  for (const std::string& name : shipped_platforms()) {
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) found.push_back(name);
  }
  if (found.empty()) bad_input("platform", "--platform {}: no file and no shipped platform has such a name", pattern);
  return found;
}

}  // namespace hcclsim::study
