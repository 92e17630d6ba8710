#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "hccl/parallel/layout/tensor_layout.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/graph.hpp"

/// The groups in which devices meet, as operators of a graph name them: by the number of a family. Equal groups are one
/// family.
namespace hcclsim::hccl {

class DeviceFamilies {
 public:
  /// New ones are added to `families`, which must outlive it.
  explicit DeviceFamilies(std::vector<DeviceGroups>& families) : families_(families) {}

  /// The groups of devices that differ in axes of a matrix, counted from the right; none if there is only one device in
  /// each.
  models::Group group_along(const DeviceMatrix& matrix, std::vector<std::uint32_t> axes);
  /// The groups of devices that have the same part of a tensor.
  models::Group copies_of(const TensorLayout& layout) { return group_of(layout.replicas()); }
  /// Groups of `size` neighbours in the groups of a family; 0: these themselves.
  models::Group divided(const models::Group& group, std::uint32_t size);
  /// The group of an operator that needs to know which part a device has: its ranks are in the order of the parts.
  /// Throws Error(bad_input, "strategy") if they cannot be.
  models::Group group_of_parts(const OperatorSharding& sharding, const std::vector<std::string_view>& dimensions);

 private:
  models::Group group_of(DeviceGroups groups);

  std::vector<DeviceGroups>& families_;
  std::map<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>, models::Group>
      groups_;  // by the sizes of a matrix and its axes from the left
};

}  // namespace hcclsim::hccl
