#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"

/// Mixed precision by the levels of `--amp`, and what each of them means for the types of a step.
namespace hcclsim::models {

enum class Amp : std::uint8_t {
  o0,  ///< all fp32
  o2,  ///< fp16 activations and weight casts; fp32 batch norm, master weights and gradients
  o3,  ///< all fp16, no master weights
};

[[nodiscard]] std::string_view name_of(Amp amp);
/// Inverse of name_of; throws Error(bad_input).
[[nodiscard]] Amp parse_amp(std::string_view name);

/// Element type of activations, of their gradients and of the weights that the cube reads.
[[nodiscard]] constexpr DataType activation_type(Amp amp) { return amp == Amp::o0 ? DataType::fp32 : DataType::fp16; }
/// Element type of parameters as the optimizer keeps them, of their gradients, and of batch norm's arithmetic.
[[nodiscard]] constexpr DataType master_type(Amp amp) { return amp == Amp::o3 ? DataType::fp16 : DataType::fp32; }

}  // namespace hcclsim::models
