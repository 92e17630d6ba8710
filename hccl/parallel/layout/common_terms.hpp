#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/parallel/layout/tensor_layout.hpp"

/// Two layouts over the same devices in common terms: one matrix and one shape, factored until each axis of the tensor
/// is cut along one axis of the matrix at most.
namespace hcclsim::hccl {

struct CommonTerms {
  static constexpr std::uint32_t uncut = ~0U;

  DeviceMatrix devices;
  models::Shape shape;
  /// Of each axis of the shape, the axis of the matrix that cuts it, counted from the right.
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> to;
};

/// Nothing if there are none: an axis would have to be factored in two ways that do not fit.
[[nodiscard]] std::optional<CommonTerms> common_terms(const TensorLayout& from, const TensorLayout& to);

}  // namespace hcclsim::hccl
