#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.hpp"

/// The element types of a step: what is kept, computed, handed on and updated in which type.
namespace hcclsim::models {

/// Levels of mixed precision, as of `--amp`.
enum class Amp : std::uint8_t {
  o0,  ///< all fp32
  o2,  ///< fp16 activations and weight casts; fp32 batch norm, master weights and gradients
  o3,  ///< all fp16, no master weights
};

[[nodiscard]] std::string_view name_of(Amp amp);
/// Inverse of name_of; throws Error(bad_input).
[[nodiscard]] Amp parse_amp(std::string_view name);

struct Precision {
  DataType weight = DataType::fp32;     ///< parameters between steps, and the arithmetic of batch norm
  DataType compute = DataType::fp16;    ///< activations, their gradients, and the weights that the cube reads
  DataType gradient = DataType::fp32;   ///< of parameters, as the backward pass writes them
  DataType optimizer = DataType::fp32;  ///< states, and the arithmetic of updates
  /// The optimizer keeps a copy of the weights in its own type, of which `weight` is what the network reads.
  bool master_weights = false;

  bool operator==(const Precision&) const = default;
};

[[nodiscard]] constexpr Precision precision_of(Amp amp) {
  using enum DataType;
  if (amp == Amp::o0) return {.compute = fp32};
  if (amp == Amp::o3) return {.weight = fp16, .gradient = fp16, .optimizer = fp16};
  return {};
}

/// MindSpore's rules of the type in which the gradient of a parameter is reduced: that of the parameter, to which the
/// backward pass casts it.
struct GradientSync {
  /// A parameter that is cast before it is used has its gradient reduced before the cast's backward pass, in the type
  /// that it is cast to (gradient_fp32_sync False). Not if gradients of micro-batches are added up first, which happens
  /// in the type of the parameter.
  bool as_used = false;
  /// What is not fp32 is cast to fp32, reduced and cast back (force_fp32_communication; always in data_parallel mode).
  bool in_fp32 = false;
  /// The gradient's own type is that in which the backward pass writes it, whatever that of its parameter is (ZeRO).
  bool as_written = false;

  bool operator==(const GradientSync&) const = default;
};

/// "O2", or what is not as one of the levels has it: "parameters fp16, compute bf16, gradients fp16, optimizer fp32".
[[nodiscard]] std::string to_string(const Precision& precision);

/// Throws Error(bad_input, "option") for types that no network is trained in, and for an optimizer that is less exact
/// than the weights.
void require_precision(const Precision& precision);

}  // namespace hcclsim::models
