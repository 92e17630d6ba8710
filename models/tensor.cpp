#include "models/tensor.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace hcclsim::models {

std::uint64_t Shape::elements() const {
  return std::accumulate(sizes_.begin(), sizes_.end(), std::uint64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) {
  const std::size_t rank =
      shape.rank() > 2 && shape.elements() == std::uint64_t{shape.batch()} * shape.channels() ? 2 : shape.rank();
  std::string text;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    text += fmt::format("{}{}", axis == 0 ? "" : "x", shape.size(axis));
  }
  return text;
}

}  // namespace hcclsim::models
