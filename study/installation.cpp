#include "study/installation.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "models/onnx/model_file.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

std::string platforms_found() { return fmt::format("{} in {}", shipped_platforms().size(), platform_folder()); }

std::string step_on(sim::NetworkKind network) {
  RunSpec spec;
  spec.model = {.name = "lenet", .batch = 1};
  spec.platform.file = "atlas800-9000";
  spec.npus = 2;
  spec.simulation.iterations = 1;
  spec.simulation.network = network;
  return fmt::format("a step of {:.6f} s", simulate(spec).step_time);
}

/// The first program of this name in the folders of PATH. Throws Error(bad_input, "path") if there is none.
std::string program(const std::string& name) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no thread changes it
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    std::error_code ignored;
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    if (std::filesystem::is_regular_file(file, ignored)) return file;
  }
  bad_input("path", "{} is in no folder of PATH", name);
}

/// Whether Python finds the packages, and where. Nothing of the working folder is executed (-I), unless PYTHONPATH
/// names it: an empty entry does not. Throws Error(bad_input, "path") if it does not find them.
std::string python_packages() {
  FILE* const pipe = ::popen(  // NOLINT(cert-env33-c): the user's Python, by the user's PATH
      "python3 -I -c 'import os, site, sys\n"
      "site.addsitedir(site.getusersitepackages())\n"
      "sys.path[:0] = filter(None, os.environ.get(\"PYTHONPATH\", \"\").split(os.pathsep))\n"
      "import hccl, hcclsim\n"
      "print(os.path.dirname(hcclsim.__file__))' 2>&1",
      "re");
  if (pipe == nullptr) bad_input("path", "python3 cannot be started");
  std::string said;
  std::array<char, 4096> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    said.append(buffer.data(), count);
  }
  const bool works = ::pclose(pipe) == 0;
  const std::vector<std::string_view> lines = split(trimmed(said), '\n');
  if (!works) bad_input("path", "{}", lines.back());  // of a traceback the error
  return std::string(lines.back());
}

}  // namespace

InstalledPart tried(InstalledPart part, const std::function<std::string()>& work) {
  try {
    part.found = work();
    part.works = true;
  } catch (const std::exception& error) {
    part.found = "no";
    part.remedy = shortened(fmt::format("{} ({})", part.remedy, error.what()));
  }
  return part;
}

std::vector<InstalledPart> installed_parts() {
  return {
      tried({.name = "platforms",
             .needed = true,
             .purpose = "the clusters that come with hcclsim",
             .remedy = "install hcclsim anew, or set HCCLSIM_PLATFORMS to their folder"},
            platforms_found),
      tried({.name = "simulation",
             .needed = true,
             .purpose = "every command that simulates",
             .remedy = "install hcclsim anew"},
            [] { return step_on(sim::NetworkKind::fluid); }),
      tried({.name = "SimGrid",
             .needed = true,
             .purpose = "--network simgrid, and platform files with SimGrid's own fabrics",
             .remedy = "install Debian's libsimgrid3.32, and libhcclsim_simgrid.so beside the command"},
            [] { return step_on(sim::NetworkKind::simgrid); }),
      tried({.name = "ONNX",
             .purpose = "--model FILE.onnx",
             .remedy = "install Debian's libonnx1, and libhcclsim_onnx.so beside the command"},
            [] {
              static_cast<void>(models::onnx::onnx_module());
              return std::string("loaded");
            }),
      tried({.name = "python3",
             .purpose = "hcclsim script, and the packages of Python",
             .remedy = "install Debian's python3"},
            [] { return program("python3"); }),
      tried({.name = "Python packages",
             .purpose = "import hcclsim, hccl in Python and notebooks",
             .remedy = "pip install the folder python of the sources, or name a folder with both in PYTHONPATH"},
            python_packages),
      tried({.name = "g++", .purpose = "to compile programs for hcclsim exec", .remedy = "install Debian's g++"},
            [] { return program("g++"); }),
      tried({.name = "Slurm", .purpose = "hcclsim sweep submit", .remedy = "install Slurm's commands"},
            [] { return program("sbatch"); }),
  };
}

}  // namespace hcclsim::study
