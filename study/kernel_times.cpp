#include "study/kernel_times.hpp"

#include <string>

#include "study/on_platform.hpp"

namespace hcclsim::study {

std::vector<Seconds> kernel_times(const PlatformSpec& platform, const models::Graph& graph,
                                  const device::ProgramOptions& options) {
  return on_platform(platform, {}, [&](const LoadedPlatform& loaded) {
    std::vector<std::string> notes;
    std::vector<Seconds> times;
    for (const models::Kernel& kernel : make_program(graph, loaded.soc, options, notes).kernels) {
      times.push_back(kernel.duration);
    }
    return times;
  });
}

}  // namespace hcclsim::study
