#include "hccl/parallel/layout/named_device_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/suggest.hpp"

namespace hcclsim::hccl {

NamedDeviceMatrix::NamedDeviceMatrix(std::vector<std::uint32_t> sizes, std::vector<std::string> names)
    : devices_{std::move(sizes)}, names_(std::move(names)) {
  if (devices_.sizes.size() != names_.size()) {
    bad_input("value-error", "Layout: device_matrix ({}) has {}, alias_name has {}", fmt::join(devices_.sizes, ","),
              counted(devices_.sizes.size(), "axis", "axes"), counted(names_.size(), "name"));
  }
  std::uint64_t product = 1;
  for (const std::uint32_t size : devices_.sizes) product = std::min<std::uint64_t>(product * size, UINT32_MAX + 1ULL);
  if (product == 0 || product > UINT32_MAX) {
    bad_input("value-error", "Layout: device_matrix ({}) does not have 1 to {} devices", fmt::join(devices_.sizes, ","),
              UINT32_MAX);
  }
  for (auto name = names_.begin(); name != names_.end(); ++name) {
    if (name->empty() || *name == none) {
      bad_input("value-error", "Layout: an axis cannot have the name '{}' in alias_name", *name);
    }
    if (std::find(names_.begin(), name, *name) != name) {
      bad_input("value-error", "Layout: two axes have the name '{}' in alias_name", *name);
    }
  }
}

TensorMap NamedDeviceMatrix::map(const std::vector<std::vector<std::string>>& axes) const {
  std::vector<bool> used(names_.size());
  TensorMap map;
  for (const std::vector<std::string>& names : axes) {
    std::vector<std::uint32_t>& cutting = map.emplace_back();
    if (names.size() == 1 && names.front() == none) continue;
    for (const std::string& name : names) {
      const auto found = std::ranges::find(names_, name);
      if (found == names_.end()) {
        bad_input("value-error", "Layout: no axis has the name '{}'{}; accepted: {}, None", name,
                  did_you_mean(name, names_), fmt::join(names_, ", "));
      }
      const auto axis = static_cast<std::size_t>(std::distance(names_.begin(), found));
      if (used[axis]) bad_input("value-error", "Layout: the axis '{}' cuts twice", name);
      used[axis] = true;
      cutting.push_back(static_cast<std::uint32_t>(names_.size() - 1 - axis));
    }
  }
  return map;
}

}  // namespace hcclsim::hccl
