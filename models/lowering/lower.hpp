#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/graph.hpp"
#include "models/lowering/kernel.hpp"
#include "models/lowering/precision.hpp"

/// Turns a graph into the kernels that the graph engine launches for one training step, forward then backward, with the
/// bytes that each reads and writes once. With full fusion (the public behaviour of the engine's buffer fusion)
///  - a convolution also sums up its output for the batch norm behind it, which then only normalises ("update");
///  - an addition and a ReLU run in the kernel before them, a ReLU leaves a mask of one bit per element;
///  - the last kernel to contribute to the gradient of a tensor adds the earlier contributions and applies the mask.
/// GELU, layer norm, embeddings and dropout are kernels of their own; attention is a batched product, a softmax and a
/// second product, with the probabilities kept for its backward pass of four products and a softmax gradient. A causal
/// mask saves neither work nor memory, and the heads are read in place. Batch and layer norm's backward is a reduction
/// (gives the gradients of beta and gamma) and an application; convolution and linear have bias, weight and data
/// gradients; the network's input gets no gradient.
namespace hcclsim::models {

enum class Fusion : std::uint8_t { full, none };

[[nodiscard]] std::string_view name_of(Fusion fusion);
/// Inverse of name_of; throws Error(bad_input).
[[nodiscard]] Fusion parse_fusion(std::string_view name);

struct LoweringOptions {
  Amp amp = Amp::o2;
  Fusion fusion = Fusion::full;
  /// Type in which gradients are communicated; a cast follows the kernel of a gradient of another type. Unset: as the
  /// backward pass produces them, master_type(amp).
  std::optional<DataType> communication = {};
};

/// A parameter's gradient as it goes into communication.
struct Gradient {
  std::string name;             ///< of its parameter
  std::uint32_t parameter = 0;  ///< index in parameter order
  std::uint64_t elements = 0;
  DataType dtype = DataType::fp32;
  std::uint32_t kernel = 0;  ///< it is complete when Step::kernels[kernel] has ended
};

/// A tensor that lives in HBM from the start of its first kernel to the end of its last one: activation, mask, batch
/// statistics or gradient of an activation. Weights, weight casts and parameter gradients are not among them.
struct LiveTensor {
  Bytes bytes = 0;
  std::uint32_t first_kernel = 0;
  std::uint32_t last_kernel = 0;
};

struct Step {
  std::vector<Kernel> kernels;      ///< forward, then backward, in launch order
  std::vector<Gradient> gradients;  ///< production order
  std::vector<LiveTensor> live_tensors;
  Bytes weights = 0;       ///< all parameters in master_type()
  Bytes weight_casts = 0;  ///< copies of weights in activation_type(), made by cast kernels; 0 if the types are equal
};

[[nodiscard]] Step lower(const Graph& graph, const LoweringOptions& options);

/// Bytes of live tensors during each kernel of the step.
[[nodiscard]] std::vector<Bytes> live_bytes(const Step& step);
/// The greatest of them.
[[nodiscard]] Bytes peak_live_bytes(const Step& step);

}  // namespace hcclsim::models
