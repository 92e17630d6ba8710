#pragma once

/// What looks at the reduced gradients before any of them is applied (updates.cpp has the kernels): the overflow check
/// of dynamic loss scaling and the global norm of clipping. Static loss scaling has none: its division is folded into
/// the update, as is the multiplication by the factor of the clip.
namespace hcclsim::models {

struct GradientChecks {
  bool overflow = false;     ///< dynamic loss scaling: are all gradients finite?
  bool global_norm = false;  ///< clipping: the 2-norm over all gradients
  [[nodiscard]] bool any() const { return overflow || global_norm; }
};

}  // namespace hcclsim::models
