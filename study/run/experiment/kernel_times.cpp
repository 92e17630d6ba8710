#include "study/run/experiment/kernel_times.hpp"

#include <string>

#include "study/platform/on_platform.hpp"

namespace hcclsim::study {

KernelTimes kernel_times(const PlatformSpec& platform, const models::Graph& graph,
                         const device::ProgramOptions& options) {
  return on_platform(platform, {}, [&](const LoadedPlatform& loaded) {
    std::vector<std::string> notes;
    KernelTimes times{.fused_attention = fuses_attention(loaded.soc, options), .times = {}};
    for (const models::Kernel& kernel : make_program(graph, loaded.soc, options, notes).kernels) {
      times.times.push_back(kernel.duration);
    }
    return times;
  });
}

}  // namespace hcclsim::study
