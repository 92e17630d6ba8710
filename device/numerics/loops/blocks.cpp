#include "device/numerics/loops/blocks.hpp"

#include <algorithm>

namespace hcclsim::device {
namespace {

/// Calls `use` with the places of each row of a block in the grid and in the block, and its length.
template <typename Use>
void for_each_run(const GridForm& grid, const GridBlock& block, const Use& use) {
  const std::size_t length = block.columns * grid.inner;
  for (std::size_t outer = 0; outer < grid.outer; ++outer) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      const std::size_t line = outer * grid.rows + block.first_row + row;
      use((line * grid.columns + block.first_column) * grid.inner, (outer * block.rows + row) * length, length);
    }
  }
}

}  // namespace

void take_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to) {
  const float* in = from + first * whole.inner;
  for (std::size_t i = 0; i < part.outer; ++i, in += whole.row(), to += part.row()) std::copy_n(in, part.row(), to);
}

void put_part(const AxisForm& whole, const AxisForm& part, std::size_t first, const float* from, float* to) {
  float* out = to + first * whole.inner;
  for (std::size_t i = 0; i < part.outer; ++i, from += part.row(), out += whole.row()) {
    std::copy_n(from, part.row(), out);
  }
}

void take_block(const GridForm& grid, const GridBlock& block, const float* from, float* to) {
  for_each_run(grid, block, [&](std::size_t in_grid, std::size_t in_block, std::size_t length) {
    std::copy_n(from + in_grid, length, to + in_block);
  });
}

void put_block(const GridForm& grid, const GridBlock& block, const float* from, float* to) {
  for_each_run(grid, block, [&](std::size_t in_grid, std::size_t in_block, std::size_t length) {
    std::copy_n(from + in_block, length, to + in_grid);
  });
}

void add_block(const GridForm& grid, const GridBlock& block, const float* from, float* to) {
  for_each_run(grid, block, [&](std::size_t in_grid, std::size_t in_block, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) to[in_grid + i] += from[in_block + i];
  });
}

}  // namespace hcclsim::device
