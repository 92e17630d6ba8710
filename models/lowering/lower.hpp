#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/graph.hpp"
#include "models/lowering/precision.hpp"
#include "models/lowering/sharding.hpp"
#include "models/program.hpp"

/// Turns a graph into the kernels that the graph engine launches for one training step, forward then backward, with the
/// bytes that each reads and writes once. With full fusion (the public behaviour of the engine's buffer fusion)
///  - a convolution also sums up its output for the batch norm behind it, which then only normalises ("update");
///  - an addition and a ReLU run in the kernel before them, a ReLU leaves a mask of one bit per element;
///  - the last kernel to contribute to the gradient of a tensor adds the earlier contributions and applies the mask.
/// GELU, layer norm, embeddings and dropout are kernels of their own; attention is a batched product, a softmax and a
/// second product, with the probabilities kept for its backward pass of four products and a softmax gradient. A causal
/// mask saves neither work nor memory, and the heads are read in place. Fused attention (a choice) is one kernel in
/// either pass: its scores never reach HBM, what a causal mask hides is not computed, and the backward pass computes
/// the scores again. A softmax with dropout is followed by a kernel that drops; fused, by one that makes the mask.
/// Gates are one kernel, which keeps its softmax for the backward pass; dispatching copies rows to their experts, the
/// linear operators of all experts are one grouped product, and combining is one kernel in either pass.
/// Batch and layer norm's backward is a reduction (gives the gradients of beta and gamma) and an application;
/// convolution and linear have bias, weight and data gradients; the network's input gets no gradient. Communication is
/// a kernel by itself. Its backward pass is its dual: all_reduce and all_reduce, all_gather and reduce_scatter,
/// all_to_all and all_to_all back, send and receive; the gradient of a broadcast is handed on, that of a slice padded
/// with zeros, splitting and joining undo each other, borders that came from neighbours go back to them. Batch norm,
/// loss and attention over a group communicate between their kernels. Operators whose outputs are not kept are launched
/// again in the backward pass before their results are first needed there, in phase backward; random masks are kept.
namespace hcclsim::models {

enum class Fusion : std::uint8_t { full, none };

[[nodiscard]] std::string_view name_of(Fusion fusion);
/// Inverse of name_of; throws Error(bad_input).
[[nodiscard]] Fusion parse_fusion(std::string_view name);

struct LoweringOptions {
  Precision precision{};
  Fusion fusion = Fusion::full;
  bool fused_attention = false;
  /// Type in which gradients are communicated; a cast follows the kernel of a gradient of another type. Unset: as the
  /// backward pass produces them.
  std::optional<DataType> communication = {};
  std::optional<GradientSync> sync = {};  ///< decides that type parameter by parameter, in place of `communication`
  /// Collectives of operators that add up fp16 or bf16 add up fp32: a cast comes before each of them, one back after it
  /// (MindSpore's force_fp32_communication).
  bool fp32_sums = false;
  /// A step has several micro-batches, whose gradients are added up. Weights are cast with the first of them, gradients
  /// with the last.
  bool accumulate = false;
  bool forward_only = false;  ///< nothing is kept for a backward pass; batch norm takes its running statistics
  ShardingOptions sharding{};
};

/// Forward and backward of a graph. What comes once per step follows by add_updates() (updates.hpp).
[[nodiscard]] Program lower(const Graph& graph, const LoweringOptions& options);

}  // namespace hcclsim::models
