#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::study {

/// A network of the zoo with what one training step launches on one NPU. Throws what make_model throws.
struct LoweredModel {
  LoweredModel(const models::ModelOptions& options, models::Amp amp, models::Optimizer optimizer,
               models::Fusion fusion);

  models::Graph graph;
  models::Step step;
  std::vector<models::Kernel> kernels;  ///< forward and backward, then the update's, gradient by gradient
  models::Amp amp;
  models::Optimizer optimizer;

  [[nodiscard]] std::uint64_t count(models::Phase phase) const;  ///< kernels
  [[nodiscard]] Flops flops(models::Phase phase) const;          ///< without the update's
  [[nodiscard]] Bytes gradient_bytes() const;
};

}  // namespace hcclsim::study
