#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/parallel/layout/tensor_layout.hpp"

/// MindSpore's Layout(device_matrix, alias_name): a matrix of devices whose axes have names. Called with names for each
/// axis of a tensor, it says what cuts them.
namespace hcclsim::hccl {

class NamedDeviceMatrix {
 public:
  /// The name of what cuts nothing.
  static constexpr std::string_view none = "None";

  /// Throws Error(value-error) unless there are as many names as axes, all different, none of them empty or "None", and
  /// at least one device and fewer than 2³².
  NamedDeviceMatrix(std::vector<std::uint32_t> sizes, std::vector<std::string> names);

  [[nodiscard]] const DeviceMatrix& devices() const { return devices_; }
  /// Of each axis of a tensor the names of what cuts it, the one that varies slowest first; "None" alone, or no name:
  /// it is not cut. Throws Error(value-error) for a name that is unknown or stands there twice.
  [[nodiscard]] TensorMap map(const std::vector<std::vector<std::string>>& axes) const;

 private:
  DeviceMatrix devices_;
  std::vector<std::string> names_;
};

}  // namespace hcclsim::hccl
