#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/lowering/kernel.hpp"

/// What one rank launches in a training step, before anything is said about streams and groups. Kernels come from a
/// graph (lowering/lower.hpp) or from a measurement (profile.hpp). The program names no rank: all ranks that do the
/// same share one.
namespace hcclsim::models {

/// How much of a parameter a rank has, and with how many others it shares it.
struct ParameterShare {
  std::string name;
  std::uint64_t elements = 0;         ///< of the whole
  DataType used_as = DataType::fp32;  ///< type in which kernels read it
  std::uint32_t shards = 1;           ///< ranks that keep a part each
  bool alone = false;                 ///< no other rank adds to its gradient
  bool borrowed = false;              ///< another stage owns it, and updates it
  bool gathered_each_use = false;     ///< by every pass that reads it, if it is gathered at all; else once per step
  bool on_host = false;               ///< the host keeps and updates it
  bool sums_parts = false;            ///< each micro-batch reduces its gradient, and adds a part of it to a sum
  bool keeps_part = false;            ///< once its gradient is reduced, a part of it is all that stays

  /// Of a part; the last one may have fewer.
  [[nodiscard]] std::uint64_t shard() const { return (elements + shards - 1) / shards; }
};

/// A parameter's gradient as it goes into communication. Index 0 in production order is complete first.
struct Gradient {
  std::string name;             ///< of its parameter
  std::uint32_t parameter = 0;  ///< index in parameter order (forward order)
  std::uint64_t elements = 0;
  DataType dtype = DataType::fp32;
  std::uint32_t kernel = 0;             ///< it is complete when this kernel has ended
  std::optional<DataType> cast_back{};  ///< type that it is given again once it is reduced; none: it stays as it is
  /// First dimension of the parameter; 0: a vector, or a shape that a measurement does not tell.
  std::uint64_t rows = 0;

  /// Of what updates read.
  [[nodiscard]] DataType reduced_type() const { return cast_back.value_or(dtype); }
};

/// A tensor that lives in HBM from the start of its first kernel to the end of its last one: activation, mask, batch
/// statistics or gradient of an activation. Weights, weight casts and parameter gradients are not among them.
struct LiveTensor {
  static constexpr std::uint32_t none = ~0U;

  Bytes bytes = 0;
  std::uint32_t first_kernel = 0;  ///< kernel 0 for the input batch, which is there before
  std::uint32_t last_kernel = 0;
  std::uint32_t writer = none;  ///< the kernel with which it is complete; none: the input batch
};

/// A kernel reads a tensor.
struct TensorRead {
  TensorId tensor = 0;
  std::uint32_t kernel = 0;
};

/// A kernel reads a parameter.
struct ParameterUse {
  std::uint32_t parameter = 0;  ///< in parameter order
  std::uint32_t kernel = 0;
};

/// Kernels of one phase and chunk as they follow each other.
struct Pass {
  Phase phase = Phase::forward;
  std::uint32_t chunk = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Program {
  std::string title;        ///< "ResNet50 v1.5"
  std::uint32_t batch = 0;  ///< samples per micro-batch on this NPU; 0 if a profile does not tell
  /// In launch order: those of a micro-batch, forward then backward, and behind them those of once per step: checks of
  /// all gradients in production order, the factor of a clip, updates in production order.
  std::vector<Kernel> kernels;
  std::uint32_t micro_batch_kernels = 0;  ///< how many of them are of a micro-batch
  std::vector<Gradient> gradients;        ///< production order
  std::vector<LiveTensor> tensors;
  std::vector<TensorRead> reads;   ///< in the order of the kernels
  std::vector<ParameterUse> uses;  ///< in the order of the kernels; none are known of a measured profile
  std::vector<ParameterShare> parameters;
  bool overflow_flag = false;  ///< no update starts before a flag of 4 bytes has been reduced over all ranks

  // HBM for the whole step.
  Bytes weights = 0;  ///< all parameters, or parts of them, in the type in which they are kept
  Bytes weight_casts =
      0;  ///< copies of weights in the type of the products, made by cast kernels; 0 if the types are equal
  Bytes gathered = 0;        ///< weights that are gathered once per step, whole
  Bytes gradient_bytes = 0;  ///< gradients, what they are cast to, and what checks of them leave
  Bytes optimizer_state = 0;
  Bytes host = 0;  ///< in the memory of the host: parameters that it keeps, their gradients and states

  [[nodiscard]] std::span<const Kernel> micro_batch() const { return {kernels.data(), micro_batch_kernels}; }
  [[nodiscard]] std::span<Kernel> micro_batch() { return {kernels.data(), micro_batch_kernels}; }
  [[nodiscard]] std::span<const Kernel> once_per_step() const {
    return std::span(kernels).subspan(micro_batch_kernels);
  }
  /// Type in which gradients are communicated; of several, that of the first one.
  [[nodiscard]] DataType gradient_type() const { return gradients.empty() ? DataType::fp32 : gradients.front().dtype; }
  [[nodiscard]] bool has_several_gradient_types() const;
  /// For people: "fp32"; "fp32 and fp16" of several types, the widest first.
  [[nodiscard]] std::string gradient_type_text() const;
  /// Bytes of each gradient as it is communicated, production order.
  [[nodiscard]] std::vector<Bytes> gradient_sizes() const;
};

/// Leaves out the time in which measured kernels waited for their host, where a simulated host issues them.
void leave_out_idle_time(Program& program);

/// Bytes of the tensors that are alive during each kernel of a micro-batch.
[[nodiscard]] std::vector<Bytes> live_bytes(const Program& program);
/// The greatest of them.
[[nodiscard]] Bytes peak_live_bytes(const Program& program);

/// The kernels of a micro-batch as runs of one phase and chunk, in launch order.
[[nodiscard]] std::vector<Pass> passes(const Program& program);

/// Numbers the gradients anew: number i is what order[i] was.
void renumber_gradients(Program& program, const std::vector<std::uint32_t>& order);

/// Numbers the gradients by their parameters, the last parameter's as 0, in place of the order in which they become
/// complete: so that ranges of gradients are ranges of parameters.
void number_gradients_by_parameter(Program& program);

/// Lets checks and updates come in the order of parameters in place of that of the gradients.
void order_updates_by_parameter(Program& program);

}  // namespace hcclsim::models
