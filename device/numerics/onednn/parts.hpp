#pragma once

#include "device/numerics/loops/blocks.hpp"
#include "device/numerics/onednn/planner.hpp"

/// Tensors as operators see them that cut and join them: row-major, in fp32.
namespace hcclsim::device::onednn {

struct PlainTensor {
  TensorId id{};
  dnnl::memory::dims sizes{};

  [[nodiscard]] AxisForm along(std::size_t axis) const;
  [[nodiscard]] std::size_t elements() const { return along(0).elements(); }
};

[[nodiscard]] PlainTensor as_plain(Planner& planner, TensorId id);
[[nodiscard]] PlainTensor new_plain_tensor(Planner& planner, dnnl::memory::dims sizes);
/// The same numbers as an output, in the type of activations; tokens stay in fp32.
[[nodiscard]] TensorId as_output(Planner& planner, const PlainTensor& tensor);

}  // namespace hcclsim::device::onednn
