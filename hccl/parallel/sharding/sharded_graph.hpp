#pragma once

#include <cstdint>
#include <optional>
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

  /// Its communication operators name families by their numbers. Operators of the whole graph, and the bias that one
  /// of them leaves to an operator of its own, have its number there as `original`; parameters have the same numbers.
  models::Graph graph{};
  Rank devices = 1;
  std::vector<DeviceGroups> families{};
  /// Of each parameter of `graph`, in parameter order: how the devices hold it. The shape is that of the whole; the
  /// weight behind which queries, keys and values lie side by side is seen as three blocks.
  std::vector<TensorLayout> parameters{};
  /// Of each parameter: the family over which its gradient is summed (its mirror); no_family: each device has the only
  /// copy of its part. Gradients on copies are addends: their sum, not divided by anything, is that of the mean loss
  /// over all rows (models::LossPart::gradient_factor).
  std::vector<std::uint32_t> mirrors{};
  /// Of each value of `graph` (Graph::first_values), which part of which tensor a device has: of operators of the whole
  /// graph and of what is made of their results for others. Rows of sequences are seen as sequences × positions.
  /// None: what is on its way between two layouts. An operator that leaves addends has the layout of their sum.
  std::vector<std::optional<TensorLayout>> values{};

  /// Whether devices have parts of a parameter.
  [[nodiscard]] bool is_cut(std::uint32_t parameter) const {
    return !parameters.empty() && parameters[parameter].slice_shape() != parameters[parameter].shape;
  }
  /// Devices that have the same of a parameter.
  [[nodiscard]] Rank copies(std::uint32_t parameter) const {
    if (mirrors.empty()) return devices;
    return mirrors[parameter] == no_family ? 1 : static_cast<Rank>(families[mirrors[parameter]].front().size());
  }
};

}  // namespace hcclsim::hccl
