#pragma once

#include <cstdint>
#include <vector>

#include "hccl/parallel/layout/redistribution.hpp"

/// Tensors that devices hold, and what redistribution does with them, element by element.
namespace hcclsim::test {

/// What one device has.
struct HeldTensor {
  models::Shape shape;
  std::vector<std::int64_t> values;

  bool operator==(const HeldTensor&) const = default;
};
using HeldTensors = std::vector<HeldTensor>;

/// A tensor whose elements are their own numbers, cut by a layout.
[[nodiscard]] HeldTensors cut(const hccl::TensorLayout& layout);

/// What every device has after the steps.
[[nodiscard]] HeldTensors carry_out(const std::vector<hccl::RedistributionStep>& steps, HeldTensors held);

}  // namespace hcclsim::test
