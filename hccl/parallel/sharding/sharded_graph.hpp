#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/layout/tensor_layout.hpp"
#include "models/graph.hpp"

/// What one device of a stage computes when operators are cut over the devices: a graph of local shapes, with
/// communication in it, which is the same for all devices of the stage.
namespace hcclsim::hccl {

/// Groups of devices of a stage (0 … devices − 1), each in one of them.
using DeviceGroups = std::vector<std::vector<Rank>>;

struct ShardedGraph {
  static constexpr std::uint32_t no_family = ~0U;

  /// Its communication operators name families by their numbers.
  models::Graph graph;
  Rank devices = 1;
  std::vector<DeviceGroups> families;
  /// Of each parameter of `graph`, in parameter order: how the devices hold it. The shape is that of the whole.
  std::vector<TensorLayout> parameters;
  /// Of each parameter: the family over which its gradient is summed (its mirror); no_family: each device has the only
  /// copy of its part.
  std::vector<std::uint32_t> mirrors;
  /// What a device reads of the batch of the whole network, if operators are cut: of its samples, with the axes of the
  /// first operator's output, and of the labels, a row of each tensor of logits on one axis.
  TensorLayout input{};
  std::vector<TensorLayout> labels{};
};

}  // namespace hcclsim::hccl
