#pragma once

#include "models/lowering/gradient_checks.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/lowering/precision.hpp"
#include "models/program.hpp"

/// What happens once per step, after the gradients are reduced.
namespace hcclsim::models {

struct UpdateOptions {
  Precision precision{};
  Optimizer optimizer = Optimizer::momentum;
  GradientChecks checks{};  ///< of dynamic loss scaling and clipping
  bool mean = false;        ///< each gradient is multiplied, once it is reduced, with the inverse of the replicas
  bool mean_again = false;  ///< all gradients are divided besides, also what one rank alone has
  bool clear = false;       ///< the sums of the gradients are set to zero for the next step
};

/// Appends the checks of all gradients, the kernel that makes the factor of a clip, and the updates to a program that
/// has forward and backward, and accounts for what they add to its HBM. Kernels are named after their parameter:
/// "fc.bias:momentum". Where ranks share a parameter, the kernels are of the rank's part, and the last of them casts
/// the part to the type in which it will be gathered.
void add_updates(Program& program, const UpdateOptions& options);

}  // namespace hcclsim::models
