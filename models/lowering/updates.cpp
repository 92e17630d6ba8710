#include "models/lowering/updates.hpp"

namespace hcclsim::models {
namespace {

/// Adds kernels for one gradient.
void append(Program& program, std::uint32_t gradient, std::vector<Kernel> kernels) {
  for (Kernel& kernel : kernels) {
    kernel.name = program.gradients[gradient].name + ":" + kernel.name;
    kernel.gradient = gradient;
    program.kernels.push_back(std::move(kernel));
  }
}

}  // namespace

void add_updates(Program& program, const UpdateOptions& options) {
  const auto count = static_cast<std::uint32_t>(program.gradients.size());
  program.overflow_flag = options.checks.overflow;
  for (std::uint32_t g = 0; g < count; ++g) {
    const Gradient& gradient = program.gradients[g];
    append(program, g, check_kernels(gradient.elements, options.checks, gradient.dtype));
  }
  if (options.checks.global_norm) program.kernels.push_back(clip_factor_kernel(count));
  for (std::uint32_t g = 0; g < count; ++g) {
    const Gradient& gradient = program.gradients[g];
    append(program, g, update_kernels(gradient.elements, options.optimizer, options.amp, gradient.dtype));
    program.optimizer_state += gradient.elements * state_bytes_per_element(options.optimizer, options.amp);
  }
  program.gradient_bytes += check_bytes(count, options.checks);
}

}  // namespace hcclsim::models
