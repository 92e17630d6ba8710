#include "hccl/parallel/layout/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace hcclsim::hccl {
namespace {

/// Checks the cuts of one tensor.
void check_cuts(const std::string& what, const Cuts& cuts, const models::Shape& shape, const StrategyRules& rules) {
  const std::string text = fmt::format("{}: the strategy ({}) of {}", rules.name, fmt::join(cuts, ","), what);
  if (cuts.size() != shape.rank()) {
    bad_input("runtime-error", "{} has {} cuts; the tensor {} has {} axes", text, cuts.size(),
              fmt::join(shape.sizes(), "x"), shape.rank());
  }
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    if (cuts[axis] == 0) bad_input("runtime-error", "{} has a cut below 1", text);
    if (shape.size(axis) % cuts[axis] != 0) {
      bad_input("runtime-error", "{} does not divide axis {} of the tensor {}", text, axis,
                fmt::join(shape.sizes(), "x"));
    }
    if (std::has_single_bit(rules.device_num) && !std::has_single_bit(cuts[axis])) {
      bad_input("runtime-error", "{} has the cut {}: with {} devices each must be a power of two", text, cuts[axis],
                rules.device_num);
    }
  }
}

void check_all_cuts(std::string_view kind, const std::vector<Cuts>& cuts, const std::vector<models::Shape>& shapes,
                    const StrategyRules& rules) {
  if (cuts.size() != shapes.size()) {
    bad_input("runtime-error", "{}: its strategy is for {} {}s, it has {}", rules.name, cuts.size(), kind,
              shapes.size());
  }
  for (std::size_t i = 0; i < cuts.size(); ++i) check_cuts(fmt::format("{} {}", kind, i), cuts[i], shapes[i], rules);
}

std::vector<Cuts> cuts_of(const DeviceMatrix& devices, const std::vector<TensorMap>& maps) {
  std::vector<Cuts> cuts;
  for (const TensorMap& map : maps) {
    Cuts& own = cuts.emplace_back();
    for (const std::vector<std::uint32_t>& axes : map) {
      own.push_back(1);
      for (const std::uint32_t axis : axes) {
        if (axis >= devices.sizes.size()) {
          bad_input("runtime-error", "a layout is cut along axis {}; its device matrix ({}) has {} axes", axis,
                    fmt::join(devices.sizes, ","), devices.sizes.size());
        }
        own.back() *= devices.size_from_right(axis);
      }
    }
  }
  return cuts;
}

}  // namespace

NamedDeviceMatrix::NamedDeviceMatrix(std::vector<std::uint32_t> sizes, std::vector<std::string> names)
    : devices_{std::move(sizes)}, names_(std::move(names)) {
  if (devices_.sizes.size() != names_.size()) {
    bad_input("value-error", "Layout: device_matrix ({}) has {} axes, alias_name has {} names",
              fmt::join(devices_.sizes, ","), devices_.sizes.size(), names_.size());
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

Strategy strategy_of(StrategyLayouts layouts) {
  Strategy strategy{cuts_of(layouts.devices, layouts.inputs), cuts_of(layouts.devices, layouts.outputs)};
  strategy.layouts = std::move(layouts);
  return strategy;
}

void check_strategy(const Strategy& strategy, const StrategyRules& rules) {
  if (!strategy.outputs.empty() && !rules.takes_out_strategy) {
    bad_input("runtime-error", "{} takes no out_strategy", rules.name);
  }
  if (strategy.layouts.has_value()) {
    const DeviceMatrix& devices = strategy.layouts->devices;
    if (!rules.takes_layouts) bad_input("runtime-error", "{} takes cuts, no layouts", rules.name);
    if (devices.devices() != rules.devices) {
      bad_input("runtime-error", "{}: the device matrix ({}) has {} devices, a stage has {}", rules.name,
                fmt::join(devices.sizes, ","), devices.devices(), rules.devices);
    }
  }
  check_all_cuts("input", strategy.inputs, rules.inputs, rules);
  if (!strategy.outputs.empty()) check_all_cuts("output", strategy.outputs, rules.outputs, rules);
}

}  // namespace hcclsim::hccl
