#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "base/units.hpp"

/// Mixed precision by the levels of `--amp`, and what each of them means for the types of a step.
namespace hcclsim::models {

enum class Amp : std::uint8_t {
  o0,  ///< all fp32
  o2,  ///< fp16 activations and weight casts; fp32 batch norm, master weights and gradients
  o3,  ///< all fp16, no master weights
};

inline constexpr std::array<std::string_view, 3> amp_names{"O0", "O2", "O3"};

[[nodiscard]] inline std::string_view name_of(Amp amp) { return amp_names[static_cast<std::size_t>(amp)]; }
/// Inverse of name_of; throws Error(bad_input).
[[nodiscard]] inline Amp parse_amp(std::string_view name) {
  const auto* const found = std::ranges::find(amp_names, name);
  if (found != amp_names.end()) return static_cast<Amp>(found - amp_names.begin());
  bad_input("option", "unknown precision level '{}'; use O0 (all fp32), O2 (mixed) or O3 (all fp16)", name);
}

/// Element type of activations, of their gradients and of the weights that the cube reads.
[[nodiscard]] constexpr DataType activation_type(Amp amp) { return amp == Amp::o0 ? DataType::fp32 : DataType::fp16; }
/// Element type of parameters as the optimizer keeps them, of their gradients, and of batch norm's arithmetic.
[[nodiscard]] constexpr DataType master_type(Amp amp) { return amp == Amp::o3 ? DataType::fp16 : DataType::fp32; }

}  // namespace hcclsim::models
