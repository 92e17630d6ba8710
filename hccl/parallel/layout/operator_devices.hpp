#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hccl/parallel/layout/tensor_layout.hpp"

/// The devices of a stage as an operator sees them. It cuts its work along axes of its own: a product of matrices along
/// rows, what is summed over, and columns. Devices that these leave over do the same work again; by default neighbours
/// do, so that the axis of repetition is the last one. Inputs and outputs are cut along the operator's axes.
namespace hcclsim::hccl {

enum class RepetitionSide : std::uint8_t { right, left };

class OperatorDevices {
 public:
  /// `sizes` of the operator's own axes. Throws Error(runtime-error) that names the operator unless their product
  /// divides `devices`.
  OperatorDevices(const std::string& name, std::vector<std::uint32_t> sizes, Rank devices,
                  RepetitionSide side = RepetitionSide::right);

  /// With the axis of repetition, if there is any repetition.
  [[nodiscard]] const DeviceMatrix& matrix() const { return matrix_; }
  /// Devices that do the same work.
  [[nodiscard]] std::uint32_t repetitions() const { return repetitions_; }

  // Axes are the operator's own, numbered from the left.

  /// Of a tensor, with what cuts each of its axes. Throws Error(runtime-error), as check_layout does.
  [[nodiscard]] TensorLayout layout(const std::string& what, models::Shape shape,
                                    const std::vector<std::vector<std::uint32_t>>& axes) const;
  /// Groups of devices that differ along `axes` alone.
  [[nodiscard]] std::vector<std::vector<Rank>> groups(const std::vector<std::uint32_t>& axes) const;

 private:
  [[nodiscard]] std::uint32_t from_left(std::uint32_t axis) const { return axis + left_; }

  DeviceMatrix matrix_;
  std::uint32_t repetitions_;
  std::uint32_t left_;  ///< axes on the left of the operator's own
};

}  // namespace hcclsim::hccl
