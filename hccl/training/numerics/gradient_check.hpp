#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/numerics/computation.hpp"
#include "device/numerics/worker_pool.hpp"
#include "models/data/dataset.hpp"

/// Compares computed gradients with difference quotients of the loss: an independent witness of the backward pass, at
/// the user's own network and data. Per parameter one entry is looked at, the one with the largest gradient of some
/// that are drawn by the seed.
///
/// The loss is computed in fp32, so a quotient has an error of its own: rounding noise ∕ h, the curvature of the loss,
/// which the quotients of h and h/2 tell, and its kinks, which those to both sides tell. These are estimates, so
/// several steps are tried: a gradient is right if it agrees with any clear quotient, wrong if it differs from all of
/// them. A sample without a clear quotient, one that is exact enough to say anything, is called unclear, not right.
namespace hcclsim::hccl {

enum class SampleVerdict : std::uint8_t {
  agrees,
  differs,
  unclear,  ///< the quotient's own error is more than half of the gradient
};

struct GradientSample {
  std::string parameter;
  std::uint64_t element = 0;  ///< row-major index in the parameter
  double gradient = 0;        ///< as the backward pass computed it
  double quotient = 0;        ///< (L(w + h) − L(w − h)) / 2h
  double tolerance = 0;       ///< |gradient − quotient| up to this agrees
  SampleVerdict verdict = SampleVerdict::unclear;
};

/// One sample for each of at most `parameters` parameters, spread evenly over all of them. `weights` ends as it was.
[[nodiscard]] std::vector<GradientSample> check_gradients(const device::Computation& computation,
                                                          device::Weights& weights, const models::Batch& batch,
                                                          const device::StepInput& input, std::uint32_t parameters,
                                                          std::uint64_t seed, device::WorkerPool& pool);

}  // namespace hcclsim::hccl
