#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/hbm.hpp"
#include "device/soc.hpp"
#include "models/graph.hpp"
#include "models/lowering/gradient_checks.hpp"
#include "models/lowering/kernel.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/profile.hpp"

/// One training step of one NPU with the duration of every kernel: what the plans of hccl/parallel are made from. It
/// comes from a model graph and the kernel cost model, or from a measured profile. It does not name a rank: all ranks
/// that do the same thing share one.
namespace hcclsim::device {

struct TimedKernel {
  std::string name;
  models::Phase phase = models::Phase::forward;
  Seconds duration = 0;
  Flops flops = 0;  ///< useful operations; 0 if a profile does not tell
};

/// A gradient in production order (the order in which back-propagation finishes them; index 0 comes first).
struct TimedGradient {
  std::string name;
  std::uint32_t parameter = 0;  ///< index of its parameter in parameter order (forward order)
  std::uint64_t elements = 0;
  std::uint32_t kernel = 0;  ///< it is complete when this kernel of Workload::kernels has ended
  /// Kernels of the optimizer for this tensor, casts included, in order; run after its reduction.
  std::vector<TimedKernel> update;
  /// Kernels that look at it after its reduction and before any update: overflow check, norm.
  std::vector<TimedKernel> checks{};
};

struct Workload {
  std::string title;                        ///< "ResNet50 v1.5"
  std::uint32_t batch = 0;                  ///< samples per step on this NPU; 0 if a profile does not tell
  std::vector<TimedKernel> kernels;         ///< forward, then backward, in launch order
  std::vector<TimedGradient> gradients;     ///< production order
  DataType gradient_type = DataType::fp32;  ///< as communicated
  HbmAccount hbm;
  std::vector<Bytes> activations{};          ///< in HBM during each kernel of `kernels`; empty: not known
  bool overflow_flag = false;                ///< no update starts before a flag of 4 bytes has been reduced
  std::optional<TimedKernel> clip_factor{};  ///< after the checks of all gradients, before all updates
};

struct WorkloadOptions {
  models::Amp amp = models::Amp::o2;
  models::Fusion fusion = models::Fusion::full;
  models::Optimizer optimizer = models::Optimizer::momentum;
  DataType gradient_type = DataType::fp32;  ///< as communicated: fp32, fp16 or bf16
  Bytes communication_buffers = 0;          ///< of all communicators of the NPU
  models::GradientChecks checks{};          ///< of dynamic loss scaling and clipping
};

/// The step of a network: its kernels with the times of the cost model. What the user should know about the figures is
/// added to `notes`. Throws Error(bad_input, "dtype") for a type that the SoC cannot compute in or that gradients
/// cannot have.
[[nodiscard]] Workload make_workload(const models::Graph& graph, const Soc& soc, const WorkloadOptions& options,
                                     std::vector<std::string>& notes);

/// The step of a measured profile: one kernel up to each ready time, so that gradients are complete when they were
/// measured to be; sizes are as communicated. Updates follow the cost model. The profile tells nothing of the forward
/// pass, the activations or the parameter order (taken as the reverse of production order): notes say so.
/// Throws Error(bad_input, "profile") if a size is not a multiple of the element's.
[[nodiscard]] Workload make_workload(const models::GradientProfile& profile, const Soc& soc,
                                     const WorkloadOptions& options, std::vector<std::string>& notes);

/// Sum of the kernels, checks and updates included: a step of one NPU without communication.
[[nodiscard]] Seconds compute_time(const Workload& workload);

}  // namespace hcclsim::device
