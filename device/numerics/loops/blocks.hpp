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

/// Sizes around two axes of a row-major tensor, one behind the other.
struct GridForm {
  std::size_t outer = 1;  ///< product of the axes before them
  std::size_t rows = 1;
  std::size_t columns = 1;
  std::size_t inner = 1;  ///< product of the axes behind them

  [[nodiscard]] std::size_t elements() const { return outer * rows * columns * inner; }
};

/// Some rows and columns of a grid.
struct GridBlock {
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t first_column = 0;
  std::size_t columns = 0;

  /// In all of a grid's outer places.
  [[nodiscard]] std::size_t elements(const GridForm& grid) const { return grid.outer * rows * columns * grid.inner; }
};

/// Copies a block out of a grid.
void take_block(const GridForm& grid, const GridBlock& block, const float* from, float* to);
/// The other way.
void put_block(const GridForm& grid, const GridBlock& block, const float* from, float* to);
/// As put_block, but adds.
void add_block(const GridForm& grid, const GridBlock& block, const float* from, float* to);

}  // namespace hcclsim::device
