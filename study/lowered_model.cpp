#include "study/lowered_model.hpp"

#include <algorithm>
#include <numeric>

namespace hcclsim::study {

LoweredModel::LoweredModel(const models::ModelOptions& options, models::Amp precision, models::Optimizer updated_by,
                           models::Fusion fusion)
    : graph(models::make_model(options)),
      program(models::lower(graph, {.amp = precision, .fusion = fusion})),
      amp(precision),
      optimizer(updated_by) {
  models::add_updates(program, {.amp = amp, .optimizer = optimizer});
}

std::uint64_t LoweredModel::count(models::Phase phase) const {
  const auto of_phase = [&](const models::Kernel& kernel) { return kernel.phase == phase; };
  return static_cast<std::uint64_t>(std::count_if(program.kernels.begin(), program.kernels.end(), of_phase));
}

Flops LoweredModel::flops(models::Phase phase) const {
  Flops sum = 0;
  for (const models::Kernel& kernel : program.kernels) sum += kernel.phase == phase ? kernel.flops : 0;
  return sum;
}

Bytes LoweredModel::gradient_bytes() const {
  const std::vector<Bytes> sizes = program.gradient_sizes();
  return std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
}

}  // namespace hcclsim::study
