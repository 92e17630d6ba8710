#include "hccl/parallel/sharding/folded_shape.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace hcclsim::hccl {

using models::Shape;

Shape folded(const Shape& whole, const Shape& seen, const Shape& part) {
  std::vector<std::uint32_t> sizes;
  std::size_t axis = 0;
  for (const std::uint32_t size : whole.sizes()) {
    std::uint64_t covered = 1;
    std::uint32_t own = 1;
    while (axis < seen.rank() && covered < size) {
      covered *= seen.size(axis);
      own *= part.size(axis++);
    }
    while (size == 1 && covered == 1 && axis < seen.rank() && seen.size(axis) == 1) ++axis;
    sizes.push_back(own);
  }
  return Shape(std::move(sizes));
}

Shape without_ones(const Shape& shape, const Shape& other) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape.size(axis) != 1 || other.size(axis) != 1) sizes.push_back(shape.size(axis));
  }
  return Shape(std::move(sizes));
}

std::uint32_t axis_without_ones(const Shape& shape, const Shape& other, std::uint32_t axis) {
  std::uint32_t number = 0;
  for (std::size_t before = 0; before < axis; ++before) {
    if (shape.size(before) != 1 || other.size(before) != 1) ++number;
  }
  return number;
}

}  // namespace hcclsim::hccl
