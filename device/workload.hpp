#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/kernel.hpp"

/// One training step of one NPU with the duration of every kernel: what the plans of hccl/parallel are made from. It
/// comes from a model graph and the kernel cost model, or from a measured profile.
namespace hcclsim::device {

struct TimedKernel {
  std::string name;
  models::Phase phase = models::Phase::forward;
  Seconds duration = 0;
};

/// A gradient in production order (the order in which back-propagation finishes them; index 0 comes first).
struct TimedGradient {
  std::string name;
  std::uint32_t parameter = 0;  ///< index of its parameter in parameter order (forward order)
  std::uint64_t elements = 0;
  std::uint32_t kernel = 0;  ///< it is complete when this kernel of Workload::kernels has ended
  /// Kernels of the optimizer for this tensor, casts included, in order; run after its reduction.
  std::vector<TimedKernel> update;
};

/// Bytes of HBM by purpose, at the moment of the peak.
struct HbmAccount {
  Bytes weights = 0;  ///< master weights and their casts
  Bytes gradients = 0;
  Bytes optimizer_state = 0;
  Bytes activations = 0;    ///< saved for the backward pass, plus the largest workspace alive with them
  Bytes communication = 0;  ///< buffers of the collectives
  [[nodiscard]] Bytes peak() const { return weights + gradients + optimizer_state + activations + communication; }
};

struct Workload {
  std::string title;                        ///< "ResNet50 v1.5"
  std::uint32_t batch = 0;                  ///< samples per step on this NPU
  std::vector<TimedKernel> kernels;         ///< forward, then backward, in launch order
  std::vector<TimedGradient> gradients;     ///< production order
  DataType gradient_type = DataType::fp32;  ///< as communicated
  HbmAccount hbm;
};

}  // namespace hcclsim::device
