#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/lowering/kernel.hpp"

/// What looks at the reduced gradients before any of them is applied, as kernels: the overflow check of dynamic loss
/// scaling and the global norm of clipping. Static loss scaling has none: its division is folded into the update, as is
/// the multiplication by the factor of the clip.
namespace hcclsim::models {

struct GradientChecks {
  bool overflow = false;     ///< dynamic loss scaling: are all gradients finite?
  bool global_norm = false;  ///< clipping: the 2-norm over all gradients
  [[nodiscard]] bool any() const { return overflow || global_norm; }
};

/// The kernels that read one reduced gradient of `elements` elements of `type`, each of them once: the overflow check
/// (one comparison per element, raises a flag of 4 bytes), then the norm (multiplies and adds in fp32, leaves a partial
/// sum of 4 bytes).
[[nodiscard]] std::vector<Kernel> check_kernels(std::uint64_t elements, const GradientChecks& checks, DataType type);

/// The kernel that makes the factor of the clip from the partial sums of so many gradients.
[[nodiscard]] Kernel clip_factor_kernel(std::uint64_t gradients);

/// HBM that the flag and the partial sums of so many gradients take.
[[nodiscard]] Bytes check_bytes(std::uint64_t gradients, const GradientChecks& checks);

}  // namespace hcclsim::models
