#pragma once

#include <cstdint>

#include "models/tensor.hpp"

/// Shapes in which graphs and layouts see the same numbers differently.
namespace hcclsim::hccl {

/// The shape in which a graph has what a layout sees in more axes: `whole` of the graph, `part` of the layout's shape
/// `seen`.
[[nodiscard]] models::Shape folded(const models::Shape& whole, const models::Shape& seen, const models::Shape& part);

/// A shape without the axes that have one element in it and in `other`.
[[nodiscard]] models::Shape without_ones(const models::Shape& shape, const models::Shape& other);

/// The number that an axis has then.
[[nodiscard]] std::uint32_t axis_without_ones(const models::Shape& shape, const models::Shape& other,
                                              std::uint32_t axis);

}  // namespace hcclsim::hccl
