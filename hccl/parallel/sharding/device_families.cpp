#include "hccl/parallel/sharding/device_families.hpp"

#include <algorithm>
#include <functional>

#include "base/error.hpp"

namespace hcclsim::hccl {

models::Group DeviceFamilies::group_along(const DeviceMatrix& matrix, std::vector<std::uint32_t> axes) {
  std::erase_if(axes, [&](std::uint32_t axis) { return matrix.size_from_right(axis) == 1; });
  if (axes.empty()) return {};
  for (std::uint32_t& axis : axes) axis = static_cast<std::uint32_t>(matrix.sizes.size()) - 1 - axis;
  std::ranges::sort(axes);
  const auto [known, is_new] = groups_.try_emplace({matrix.sizes, axes});
  if (is_new) known->second = group_of(matrix.groups(axes));
  return known->second;
}

models::Group DeviceFamilies::group_of(DeviceGroups groups) {
  const auto ranks = static_cast<std::uint32_t>(groups.front().size());
  const auto found = std::ranges::find(families_, groups);
  const auto family = static_cast<std::uint32_t>(found - families_.begin());
  if (found == families_.end()) families_.push_back(std::move(groups));
  return {.family = family, .ranks = ranks};
}

models::Group DeviceFamilies::divided(const models::Group& group, std::uint32_t size) {
  if (size == 0 || size == group.ranks) return group;
  if (size == 1) return {};
  DeviceGroups parts;
  for (const std::vector<Rank>& whole : families_[group.family]) {
    for (std::size_t begin = 0; begin < whole.size(); begin += size) {
      parts.emplace_back(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                         whole.begin() + static_cast<std::ptrdiff_t>(begin + size));
    }
  }
  return group_of(std::move(parts));
}

models::Group DeviceFamilies::group_of_parts(const OperatorSharding& sharding,
                                             const std::vector<std::string_view>& dimensions) {
  std::vector<std::uint32_t> axes;
  for (const std::string_view name : dimensions) {
    const std::size_t number = sharding.signature.find(name);
    if (number == sharding.axes.size()) continue;
    axes.insert(axes.end(), sharding.axes[number].begin(), sharding.axes[number].end());
  }
  if (!std::ranges::is_sorted(axes, std::greater<>()) && dimensions.size() == 1) {
    bad_input("strategy", "{} must be cut along axes of the devices from the left to the right", dimensions.front());
  }
  return group_along(sharding.matrix, std::move(axes));
}

}  // namespace hcclsim::hccl
