#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "device/soc.hpp"

/// How much of the HBM a training step needs. Weights, gradients, optimizer state and communication buffers exist for
/// the whole step (gradients are fused into fixed buffers before it starts); activations come and go with the kernels.
namespace hcclsim::device {

/// Bytes of HBM by purpose, at the moment of the peak.
struct HbmAccount {
  Bytes weights = 0;  ///< master weights and their casts
  Bytes gradients = 0;
  Bytes optimizer_state = 0;
  Bytes activations = 0;    ///< saved for the backward pass, plus the largest workspace alive with them
  Bytes communication = 0;  ///< buffers of the collectives
  [[nodiscard]] Bytes peak() const { return weights + gradients + optimizer_state + activations + communication; }
};

/// What to do with a step that does not fit.
enum class HbmCheck : std::uint8_t { error, warn };

/// Compares the peak with the SoC's HBM. If the peak is larger, throws Error(simulated_failure, "hbm") with the whole
/// account, or with `warn` returns that text. If it fits, returns an empty string.
[[nodiscard]] std::string check_hbm(const HbmAccount& account, const Soc& soc, HbmCheck check);

}  // namespace hcclsim::device
