#pragma once

#include <span>

#include "device/numerics/worker_pool.hpp"

/// What is asked of the gradients of all parameters together before the weights are updated. Shared out in fixed blocks
/// whose sums are added in order, so the bits do not depend on the number of workers.
namespace hcclsim::device {

/// L2 norm of `values` times `scale`, in fp64: it is finite if and only if all values are.
[[nodiscard]] double norm(WorkerPool& workers, std::span<const float> values, double scale = 1);

/// Whether no value is infinite or not a number. Blocks that nobody has begun are left out once one is found.
[[nodiscard]] bool all_finite(WorkerPool& workers, std::span<const float> values);

/// Factor on gradients of L2 norm `norm` that makes it at most `largest_norm` (more than 0). 1 if the norm is not
/// finite: no factor can mend such gradients.
[[nodiscard]] double clip_factor(double norm, double largest_norm);

}  // namespace hcclsim::device
