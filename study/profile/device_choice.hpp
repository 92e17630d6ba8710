#pragma once

#include <cstddef>
#include <span>
#include <string>

/// A profiler's file may have the rows of several devices, each with its own streams and dates. They do the same in
/// data-parallel training; one of them stands for the step.
namespace hcclsim::study {

struct DeviceChoice {
  std::string device;      ///< with the lowest number
  std::size_t others = 0;  ///< how many more there are
};

/// The choice among the devices of the rows, of which there must be one.
[[nodiscard]] DeviceChoice choose_device(std::span<const std::string> devices);

}  // namespace hcclsim::study
