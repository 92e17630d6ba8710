#include <cstdint>
#include <string_view>
#include <vector>

#include "hccl/parallel/sharding/operator_sharding.hpp"

/// What is read off a strategy that has been applied.
namespace hcclsim::hccl {

TensorLayout OperatorSharding::result() const {
  TensorLayout layout = outputs.front();
  if (scattered.has_value()) {
    std::vector<std::uint32_t>& cut = layout.map[*scattered];
    cut.insert(cut.end(), partial.begin(), partial.end());
  }
  return layout;
}

std::uint32_t OperatorSharding::cut(std::string_view dimension) const {
  const std::size_t number = signature.find(dimension);
  std::uint32_t parts = 1;
  if (number < axes.size()) {
    for (const std::uint32_t axis : axes[number]) parts *= matrix.size_from_right(axis);
  }
  return parts;
}

std::vector<std::vector<Rank>> OperatorSharding::groups(const std::vector<std::uint32_t>& from_right) const {
  std::vector<std::uint32_t> from_left;
  for (const std::uint32_t axis : from_right) {
    from_left.push_back(static_cast<std::uint32_t>(matrix.sizes.size()) - 1 - axis);
  }
  return matrix.groups(from_left);
}

}  // namespace hcclsim::hccl
