#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::study {

/// A network of the zoo with what one training step launches on one NPU. Throws what make_model throws.
struct LoweredModel {
  LoweredModel(const models::ModelOptions& options, models::Amp amp, models::Optimizer optimizer,
               models::Fusion fusion);

  models::Graph graph;
  models::Program program;
  models::Amp amp;
  models::Optimizer optimizer;

  [[nodiscard]] std::uint64_t count(models::Phase phase) const;  ///< kernels
  [[nodiscard]] Flops flops(models::Phase phase) const;
  [[nodiscard]] Bytes gradient_bytes() const;
};

}  // namespace hcclsim::study
