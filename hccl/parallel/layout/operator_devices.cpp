#include "hccl/parallel/layout/operator_devices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

OperatorDevices::OperatorDevices(const std::string& name, std::vector<std::uint32_t> sizes, Rank devices,
                                 RepetitionSide side)
    : matrix_{std::move(sizes)}, repetitions_(1), left_(0) {
  std::uint64_t used = 1;
  for (const std::uint32_t size : matrix_.sizes)
    used = std::min<std::uint64_t>(used * size, std::uint64_t{devices} + 1);
  if (used == 0 || devices % used != 0) {
    bad_input("runtime-error", "{}: its strategy needs ({}) devices, which do not divide the {} of a stage", name,
              fmt::join(matrix_.sizes, "x"), devices);
  }
  repetitions_ = devices / static_cast<std::uint32_t>(used);
  if (repetitions_ == 1) return;
  left_ = side == RepetitionSide::left ? 1 : 0;
  matrix_.sizes.insert(left_ == 1 ? matrix_.sizes.begin() : matrix_.sizes.end(), repetitions_);
}

TensorLayout OperatorDevices::layout(const std::string& what, models::Shape shape,
                                     const std::vector<std::vector<std::uint32_t>>& axes) const {
  const auto last = static_cast<std::uint32_t>(matrix_.sizes.size()) - 1;
  TensorLayout layout{matrix_, {}, std::move(shape)};
  for (const std::vector<std::uint32_t>& cutting : axes) {
    layout.map.emplace_back();
    for (const std::uint32_t axis : cutting) layout.map.back().push_back(last - from_left(axis));
  }
  check_layout(layout, what);
  return layout;
}

std::vector<std::vector<Rank>> OperatorDevices::groups(const std::vector<std::uint32_t>& axes) const {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t axis : axes) all.push_back(from_left(axis));
  return matrix_.groups(all);
}

}  // namespace hcclsim::hccl
