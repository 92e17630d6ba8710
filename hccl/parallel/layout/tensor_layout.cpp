#include "hccl/parallel/layout/tensor_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {

Rank DeviceMatrix::devices() const { return std::accumulate(sizes.begin(), sizes.end(), Rank{1}, std::multiplies<>()); }

std::vector<std::uint32_t> DeviceMatrix::coordinates(Rank device) const {
  std::vector<std::uint32_t> coordinates(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0; device /= sizes[axis]) coordinates[axis] = device % sizes[axis];
  return coordinates;
}

Rank DeviceMatrix::device(const std::vector<std::uint32_t>& coordinates) const {
  Rank device = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) device = device * sizes[axis] + coordinates.at(axis);
  return device;
}

std::vector<std::vector<Rank>> DeviceMatrix::groups(const std::vector<std::uint32_t>& axes) const {
  std::map<Rank, std::vector<Rank>> by_first;
  for (Rank rank = 0; rank < devices(); ++rank) {
    std::vector<std::uint32_t> first = coordinates(rank);
    for (const std::uint32_t axis : axes) first.at(axis) = 0;
    by_first[device(first)].push_back(rank);
  }
  std::vector<std::vector<Rank>> groups;
  for (auto& [first, members] : by_first) groups.push_back(std::move(members));
  return groups;
}

std::uint32_t TensorLayout::cuts(std::size_t axis) const {
  std::uint32_t cuts = 1;
  for (const std::uint32_t cutting : map.at(axis)) cuts *= devices.size_from_right(cutting);
  return cuts;
}

models::Shape TensorLayout::slice_shape() const {
  models::Shape slice = shape;
  for (std::size_t axis = 0; axis < map.size(); ++axis) slice.resize(axis, shape.size(axis) / cuts(axis));
  if (!rows.empty()) slice.resize(0, *std::ranges::max_element(rows));
  return slice;
}

models::Shape TensorLayout::own_shape(Rank device) const {
  models::Shape own = slice_shape();
  if (!rows.empty()) own.resize(0, rows.at(part(devices.coordinates(device), 0)));
  return own;
}

std::uint32_t TensorLayout::part(const std::vector<std::uint32_t>& coordinates, std::size_t axis) const {
  std::uint32_t part = 0;
  for (const std::uint32_t cutting : map[axis]) {
    part = part * devices.size_from_right(cutting) + coordinates.at(coordinates.size() - 1 - cutting);
  }
  return part;
}

std::vector<std::uint32_t> TensorLayout::offsets(Rank device) const {
  const std::vector<std::uint32_t> at = devices.coordinates(device);
  std::vector<std::uint32_t> offsets(map.size());
  for (std::size_t axis = 0; axis < map.size(); ++axis) {
    offsets[axis] = part(at, axis) * (shape.size(axis) / cuts(axis));
  }
  if (!rows.empty()) offsets[0] = std::accumulate(rows.begin(), rows.begin() + part(at, 0), 0U);
  return offsets;
}

std::uint32_t TensorLayout::copies() const {
  std::uint32_t copies = devices.devices();
  for (std::size_t axis = 0; axis < map.size(); ++axis) copies /= cuts(axis);
  return copies;
}

std::vector<std::vector<Rank>> TensorLayout::replicas() const {
  std::vector<std::uint32_t> free(devices.sizes.size());
  std::iota(free.begin(), free.end(), 0U);
  for (const std::vector<std::uint32_t>& cutting : map) {
    for (const std::uint32_t axis : cutting)
      std::erase(free, static_cast<std::uint32_t>(devices.sizes.size()) - 1 - axis);
  }
  return devices.groups(free);
}

TensorLayout replicated(DeviceMatrix devices, models::Shape shape) {
  TensorMap map(shape.rank());
  return {std::move(devices), std::move(map), std::move(shape)};
}

void check_layout(const TensorLayout& layout, const std::string& what) {
  const std::vector<std::uint32_t>& sizes = layout.devices.sizes;
  if (std::ranges::find(sizes, 0U) != sizes.end()) {
    bad_input("runtime-error", "{}: the device matrix ({}) has an axis of size 0", what, fmt::join(sizes, ","));
  }
  if (layout.map.size() != layout.shape.rank()) {
    bad_input("runtime-error", "{}: the tensor {} has {}, its map {}", what, models::to_string(layout.shape),
              counted(layout.shape.rank(), "axis", "axes"), layout.map.size());
  }
  std::vector<bool> used(sizes.size());
  for (std::size_t axis = 0; axis < layout.map.size(); ++axis) {
    for (const std::uint32_t cutting : layout.map[axis]) {
      if (cutting >= sizes.size()) {
        bad_input("runtime-error", "{}: axis {} of the tensor is cut along {}; the device matrix ({}) has axes 0 to {}",
                  what, axis, cutting, fmt::join(sizes, ","), sizes.size() - 1);
      }
      if (used[cutting]) bad_input("runtime-error", "{}: axis {} of the device matrix cuts twice", what, cutting);
      used[cutting] = true;
    }
    if (layout.shape.size(axis) == 0 || layout.shape.size(axis) % layout.cuts(axis) != 0) {
      bad_input("runtime-error", "{}: axis {} of the tensor {} is not divisible by its {} parts", what, axis,
                models::to_string(layout.shape), layout.cuts(axis));
    }
  }
}

TensorMap parse_tensor_map(std::string_view text) {
  const auto refuse = [text](std::string_view why) {
    bad_input("option",
              "'{}': {}; accepted: for each axis of the tensor '-' or an axis of the device matrix, counted "
              "from the right, such as 1,- or (1,0),-",
              text, why);
  };
  TensorMap map;
  bool inside = false;
  bool entry_begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ',' && !entry_begins) {
      entry_begins = true;
      ++at;
      continue;
    }
    const bool closes = c == ')' && inside && !entry_begins;
    if (!entry_begins && !closes) refuse(fmt::format("a comma is missing before '{}'", printable(text.substr(at))));
    if (closes) {
      inside = false;
      ++at;
      continue;
    }
    if (!inside) map.emplace_back();
    if (c == '(' && !inside) {
      inside = true;
      ++at;
      continue;
    }
    entry_begins = false;
    if (c == '-' && !inside) {
      ++at;
      continue;
    }
    const std::size_t digits = std::min(text.find_first_not_of("0123456789", at), text.size()) - at;
    const auto axis = parse_number<std::uint32_t>(text.substr(at, digits));
    if (!axis.has_value()) refuse("an axis is no number");
    map.back().push_back(*axis);
    at += digits;
  }
  if (inside) refuse("a parenthesis does not close");
  if (entry_begins) refuse("an axis is missing");
  return map;
}

std::string to_string(const TensorLayout& layout) {
  std::vector<std::string> entries;
  for (const std::vector<std::uint32_t>& cutting : layout.map) {
    entries.push_back(cutting.empty()       ? "-"
                      : cutting.size() == 1 ? fmt::format("{}", cutting.front())
                                            : fmt::format("({})", fmt::join(cutting, ",")));
  }
  return fmt::format("({}): ({}){}", fmt::join(layout.devices.sizes, ","), fmt::join(entries, ","),
                     layout.rows.empty() ? "" : fmt::format(" in ({}) rows", fmt::join(layout.rows, ",")));
}

}  // namespace hcclsim::hccl
