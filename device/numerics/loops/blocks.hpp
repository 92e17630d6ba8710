#pragma once

#include <cstddef>

/// Cutting and joining of row-major tensors: what an axis is cut into lies in blocks of consecutive elements, one for
/// every place in the axes before it.
namespace hcclsim::device {

/// Sizes around an axis of a row-major tensor.
struct AxisForm {
  std::size_t outer = 1;  ///< product of the axes before it
  std::size_t size = 1;   ///< of the axis
  std::size_t inner = 1;  ///< product of the axes behind it

  /// Elements of the tensor from one place in the axes before to the next one.
  [[nodiscard]] std::size_t row() const { return size * inner; }
  [[nodiscard]] std::size_t elements() const { return outer * row(); }
};

/// Copies `part`, the elements `first` … of the axis of `whole`, out of it.
void take_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to);
/// The other way.
void put_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to);
/// As put_part, but adds.
void add_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to);

}  // namespace hcclsim::device
