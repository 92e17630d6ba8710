#include "study/lowered_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hcclsim::study {

LoweredModel::LoweredModel(const models::ModelOptions& options, models::Amp precision, models::Optimizer updated_by,
                           models::Fusion fusion)
    : graph(models::make_model(options)),
      step(models::lower(graph, {.amp = precision, .fusion = fusion})),
      kernels(step.kernels),
      amp(precision),
      optimizer(updated_by) {
  for (const models::Gradient& gradient : step.gradients) {
    for (models::Kernel& kernel : models::update_kernels(gradient.elements, optimizer, amp, gradient.dtype)) {
      kernel.name = fmt::format("{}:{}", gradient.name, kernel.name);
      kernels.push_back(std::move(kernel));
    }
  }
}

std::uint64_t LoweredModel::count(models::Phase phase) const {
  const auto of_phase = [&](const models::Kernel& kernel) { return kernel.phase == phase; };
  return static_cast<std::uint64_t>(std::count_if(kernels.begin(), kernels.end(), of_phase));
}

Flops LoweredModel::flops(models::Phase phase) const {
  Flops sum = 0;
  for (const models::Kernel& kernel : step.kernels) sum += kernel.phase == phase ? kernel.flops : 0;
  return sum;
}

Bytes LoweredModel::gradient_bytes() const {
  Bytes bytes = 0;
  for (const models::Gradient& gradient : step.gradients) bytes += gradient.elements * size_of(gradient.dtype);
  return bytes;
}

}  // namespace hcclsim::study
