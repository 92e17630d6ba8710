// Platform files as they are checked before SimGrid sees them, and edits of them.

#include <algorithm>
#include <string>
#include <vector>

#include "base/memory_file.hpp"
#include "sim/platform/check.hpp"
#include "sim/platform/document.hpp"
#include "sim/platform/edit.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {

int fuzz_platform(Input input) {
  const MemoryFile file(text_of(input));
  std::vector<sim::PlatformProblem> problems;
  if (attempt([&] { problems = sim::check_platform(file.path()); }) == refused) return refused;  // no text
  const bool valid = std::ranges::none_of(problems, &sim::PlatformProblem::fatal);
  require((attempt([&] { static_cast<void>(sim::valid_platform(file.path())); }) == accepted) == valid,
          "the check of a platform contradicts itself");
  if (!valid) return refused;
  for (const char* const edit : {"link[*].bandwidth=3GBps", "npu[*].hbm_bandwidth=1TBps", "platform.sdma.setup_us=2"}) {
    const std::vector<sim::PlatformEdit> edits{sim::parse_platform_edit(edit)};
    static_cast<void>(
        attempt([&] { static_cast<void>(sim::valid_platform(sim::EditedPlatform(file.path(), edits).path())); }));
  }
  return accepted;
}

int fuzz_platform_edit(Input input) {
  return attempt([&] {
    const std::vector<sim::PlatformEdit> edits{sim::parse_platform_edit(text_of(input))};
    const std::string path = std::string(HCCLSIM_TEST_DATA) + "/platforms/lab.xml";
    static_cast<void>(sim::valid_platform(sim::EditedPlatform(path, edits).path()));
  });
}

}  // namespace hcclsim::fuzz
