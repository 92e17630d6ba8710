// Platform files that pass the check, loaded by SimGrid in a process of their own: none may crash it.

#include <string>

#include "base/memory_file.hpp"
#include "sim/platform/check.hpp"
#include "sim/platform/document.hpp"
#include "study/platform/platform_summary.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {

int fuzz_platform_loading(Input input) {
  const MemoryFile file(text_of(input));
  return attempt([&] {
    static_cast<void>(sim::valid_platform(file.path()));
    require(study::load_platform(file.path()).npus > 0, "a platform without NPUs");
  });
}

}  // namespace hcclsim::fuzz
