#pragma once

#include "models/lowering/gradient_checks.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/lowering/precision.hpp"
#include "models/program.hpp"

/// What happens once per step, after the gradients are reduced.
namespace hcclsim::models {

struct UpdateOptions {
  Amp amp = Amp::o2;
  Optimizer optimizer = Optimizer::momentum;
  GradientChecks checks{};  ///< of dynamic loss scaling and clipping
};

/// Appends the checks of all gradients, the kernel that makes the factor of a clip, and the updates to a program that
/// has forward and backward, and accounts for what they add to its HBM. Kernels are named after their parameter:
/// "fc.bias:momentum".
void add_updates(Program& program, const UpdateOptions& options);

}  // namespace hcclsim::models
