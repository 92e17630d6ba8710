#pragma once

#include <cstdint>
#include <span>
#include <string>

/// Weights and gradients of a network are in flat buffers of fp32, tensor by tensor in production order without gaps,
/// so that every gradient segment is one contiguous range. A slot is the place of one parameter in such a buffer.
namespace hcclsim::device {

struct ParameterSlot {
  std::string name;             ///< "layer1.0.conv1.weight"
  std::uint32_t parameter = 0;  ///< in parameter order
  std::uint64_t offset = 0;     ///< of its first element
  std::uint64_t elements = 0;
  bool norm_or_bias = false;  ///< scale or shift of a normalization, or a bias: the parameters of one dimension

  /// Its elements in a flat buffer.
  template <typename T>
  [[nodiscard]] std::span<T> in(std::span<T> flat) const {
    return flat.subspan(offset, elements);
  }
};

}  // namespace hcclsim::device
