#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/hbm.hpp"
#include "device/soc.hpp"
#include "models/graph.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/profile.hpp"
#include "models/program.hpp"

/// The Program of a network or of a measured profile on an NPU: with the duration of every kernel.
namespace hcclsim::device {

struct ProgramOptions {
  models::Precision precision{};
  models::Fusion fusion = models::Fusion::full;
  models::Optimizer optimizer = models::Optimizer::momentum;
  DataType gradient_type = DataType::fp32;              ///< as communicated: fp32, fp16 or bf16
  std::optional<models::GradientSync> gradient_sync{};  ///< decides that type in place of gradient_type
  bool fp32_sums = false;                               ///< collectives of operators add up fp32, whatever they carry
  models::GradientChecks checks{};                      ///< of dynamic loss scaling and clipping
  /// Attention as one kernel; unset: where the SoC's libraries have it, see fuses_attention.
  std::optional<bool> fused_attention = {};
  bool accumulate = false;  ///< a step has several micro-batches
  models::ShardingOptions sharding{};
  bool forward_only = false;    ///< the network is applied, not trained
  bool gradients_mean = false;  ///< reduced gradients are divided by the replicas before their update
  bool mean_again = false;      ///< … by the devices besides
};

/// Whether attention is one kernel: FlashAttentionScore of CANN's operator library, which is for A2 and A3.
[[nodiscard]] inline bool fuses_attention(const Soc& soc, const ProgramOptions& options) {
  return options.fused_attention.value_or(soc.generation != Generation::a1);
}

/// Kernels with the times of the cost model. What the user should know about the figures is added to `notes`. Throws
/// Error(bad_input, "dtype") for a type that the SoC cannot compute in or that gradients cannot have.
[[nodiscard]] models::Program make_program(const models::Graph& graph, const Soc& soc, const ProgramOptions& options,
                                           std::vector<std::string>& notes);

/// The step of a measured profile: one kernel up to each ready time, so that gradients are complete when they were
/// measured to be; sizes are as communicated. Updates follow the cost model. The profile tells nothing of the forward
/// pass, the activations or the parameter order (taken as the reverse of production order): notes say so.
/// Throws Error(bad_input, "profile") if a size is not a multiple of the element's.
[[nodiscard]] models::Program make_program(const models::GradientProfile& profile, const Soc& soc,
                                           const ProgramOptions& options, std::vector<std::string>& notes);

/// HBM of an NPU that runs the program, with `communication_buffers` for all of its communicators.
[[nodiscard]] HbmAccount hbm_account(const models::Program& program, Bytes communication_buffers);

}  // namespace hcclsim::device
