#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/tensor.hpp"

/// How the devices of a stage hold a tensor: arranged in a matrix, row-major, so that its last axis varies fastest
/// with the rank, they cut the axes of the tensor along axes of the matrix.
namespace hcclsim::hccl {

/// Sizes of its axes, from the left; their product is the number of devices of a stage. Without axes it is one device.
struct DeviceMatrix {
  std::vector<std::uint32_t> sizes;

  [[nodiscard]] Rank devices() const;
  /// Size of an axis that is counted from the right, as maps of tensors count them.
  [[nodiscard]] std::uint32_t size_from_right(std::uint32_t axis) const { return sizes.at(sizes.size() - 1 - axis); }
  /// Coordinates of a device, from the left.
  [[nodiscard]] std::vector<std::uint32_t> coordinates(Rank device) const;
  [[nodiscard]] Rank device(const std::vector<std::uint32_t>& coordinates) const;
  /// The groups of devices that differ in the coordinates of `axes` (numbered from the left) alone, each ascending; by
  /// their first devices.
  [[nodiscard]] std::vector<std::vector<Rank>> groups(const std::vector<std::uint32_t>& axes) const;

  bool operator==(const DeviceMatrix&) const = default;
};

/// Of each axis of a tensor, the axes of the matrix that cut it, counted from the right (0 is the last), the one that
/// varies slowest first; empty: it is not cut.
using TensorMap = std::vector<std::vector<std::uint32_t>>;

struct TensorLayout {
  DeviceMatrix devices;
  TensorMap map;
  models::Shape shape;  ///< of the whole tensor
  /// Sizes of the parts of the first axis if they are not equal; empty: all parts of all axes are.
  std::vector<std::uint32_t> rows{};

  /// Parts that an axis of the tensor is cut into.
  [[nodiscard]] std::uint32_t cuts(std::size_t axis) const;
  /// Of the part of a device; of parts that are not equal, of the largest, for which all devices have the place.
  [[nodiscard]] models::Shape slice_shape() const;
  /// What a device has of it: fewer rows, if parts are not equal.
  [[nodiscard]] models::Shape own_shape(Rank device) const;
  /// Where the part of a device begins, on each axis.
  [[nodiscard]] std::vector<std::uint32_t> offsets(Rank device) const;
  /// How many devices hold the same part.
  [[nodiscard]] std::uint32_t copies() const;
  /// Devices that hold the same part.
  [[nodiscard]] std::vector<std::vector<Rank>> replicas() const;

  bool operator==(const TensorLayout&) const = default;

 private:
  /// Number of the part of a device along an axis.
  [[nodiscard]] std::uint32_t part(const std::vector<std::uint32_t>& coordinates, std::size_t axis) const;
};

/// Every device holds the whole tensor.
[[nodiscard]] TensorLayout replicated(DeviceMatrix devices, models::Shape shape);

/// Throws Error(runtime-error) that begins with `what` unless the layout is one: an entry of the map for every axis of
/// the tensor, axes of the matrix that are there and cut once, parts that are equal.
void check_layout(const TensorLayout& layout, const std::string& what);

/// Parses "1,-" or "(1,0),-": for each axis of a tensor what cuts it, as a map counts axes; "-" nothing, several axes
/// in parentheses. Throws Error(bad_input, "option").
[[nodiscard]] TensorMap parse_tensor_map(std::string_view text);

/// "(2,4): (1,-)", the matrix and what cuts every axis: "-" nothing, "(1,0)" several axes; "… in (10,20) rows".
[[nodiscard]] std::string to_string(const TensorLayout& layout);

}  // namespace hcclsim::hccl
