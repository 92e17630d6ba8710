#pragma once

#include <span>

#include "device/numerics/worker_pool.hpp"

/// Checks of the gradients of all parameters together, before the weights are updated. The work is shared out in fixed
/// blocks whose sums are added in order, so the bits do not depend on the number of workers.
namespace hcclsim::device {

/// L2 norm of `values` times `scale`, in fp64: it is finite if and only if all values are.
[[nodiscard]] double norm(WorkerPool& workers, std::span<const float> values, double scale = 1);

/// Whether all values are finite: none is infinite or NaN. Once one is found that is not, blocks that have not begun
/// are left out.
[[nodiscard]] bool all_finite(WorkerPool& workers, std::span<const float> values);

/// The factor that brings gradients of L2 norm `norm` to a norm of at most `largest_norm` (more than 0). 1 if the norm
/// is not finite: no factor can repair such gradients.
[[nodiscard]] double clip_factor(double norm, double largest_norm);

}  // namespace hcclsim::device
