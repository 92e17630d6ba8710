#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"

/// Sizes and element types of tensors, of any rank.
namespace hcclsim::models {

/// Sizes from the outermost axis on. Images are batch × channels × height × width, features rows × features, tokens
/// sequences × length. Sequences are features: sequences × length rows, one after the other.
class Shape {
 public:
  /// A scalar.
  Shape() = default;
  Shape(std::initializer_list<std::uint32_t> sizes) : sizes_(sizes) {}
  explicit Shape(std::vector<std::uint32_t> sizes) : sizes_(std::move(sizes)) {}

  [[nodiscard]] std::size_t rank() const { return sizes_.size(); }
  [[nodiscard]] const std::vector<std::uint32_t>& sizes() const { return sizes_; }
  /// 1 for an axis that the tensor does not have.
  [[nodiscard]] std::uint32_t size(std::size_t axis) const { return axis < sizes_.size() ? sizes_[axis] : 1; }
  void resize(std::size_t axis, std::uint32_t size) { sizes_.at(axis) = size; }
  [[nodiscard]] std::uint64_t elements() const {
    return std::accumulate(sizes_.begin(), sizes_.end(), std::uint64_t{1}, std::multiplies<>());
  }

  // The axes of images and of features.
  [[nodiscard]] std::uint32_t batch() const { return size(0); }
  [[nodiscard]] std::uint32_t channels() const { return size(1); }
  [[nodiscard]] std::uint32_t height() const { return size(2); }
  [[nodiscard]] std::uint32_t width() const { return size(3); }
  /// Pixels of one channel; 1 for features.
  [[nodiscard]] std::uint64_t image() const { return std::uint64_t{height()} * width(); }

  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::uint32_t> sizes_;
};

/// "32x64x112x112"; where all axes behind the second have the size 1, they are left out: "32x1000".
[[nodiscard]] inline std::string to_string(const Shape& shape) {
  const std::size_t rank =
      shape.rank() > 2 && shape.elements() == std::uint64_t{shape.batch()} * shape.channels() ? 2 : shape.rank();
  std::string text;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    text += fmt::format("{}{}", axis == 0 ? "" : "x", shape.size(axis));
  }
  return text;
}

struct Tensor {
  Shape shape;
  DataType dtype = DataType::fp32;  ///< as the network is written; mixed precision stores some in another type
  bool operator==(const Tensor&) const = default;
};

}  // namespace hcclsim::models
