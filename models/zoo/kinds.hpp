#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// Of which parts the layers of a decoder are made, with the names that users call them by.
namespace hcclsim::models {

/// How a token's position is told.
enum class PositionKind : std::uint8_t {
  rotary,  ///< queries and keys are turned
  table,   ///< a row of a table is added to that of the token
  none     ///< by the causal mask alone
};
enum class NormKind : std::uint8_t { rms, layer };
/// RMS norms of queries and keys, or of the narrow rows of latent attention that they are made of.
enum class QkNorm : std::uint8_t {
  none,
  heads,  ///< of each head by itself, with one weight for all
  rows    ///< of all heads together
};
/// The second half of a layer: two products with an activation between them, of which the first may be gated.
enum class HalfKind : std::uint8_t {
  swiglu,       ///< down(silu(gate(x)) · up(x))
  geglu,        ///< down(gelu(gate(x)) · up(x))
  gelu,         ///< down(gelu(up(x)))
  squared_relu  ///< down(relu(up(x))²)
};

/// The names of the values of an enumeration, in their order.
template <class Kind>
inline constexpr std::array<std::string_view, 0> kind_names{};
template <>
inline constexpr std::array<std::string_view, 3> kind_names<PositionKind>{"rotary", "table", "none"};
template <>
inline constexpr std::array<std::string_view, 2> kind_names<NormKind>{"rms", "layer"};
template <>
inline constexpr std::array<std::string_view, 3> kind_names<QkNorm>{"off", "on", "rows"};
template <>
inline constexpr std::array<std::string_view, 4> kind_names<HalfKind>{"swiglu", "geglu", "gelu", "squared-relu"};

}  // namespace hcclsim::models
