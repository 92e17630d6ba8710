#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/layout/tensor_layout.hpp"
#include "hccl/parallel/sharding/dimension_strategy.hpp"
#include "hccl/parallel/sharding/signature.hpp"
#include "hccl/parallel/sharding/strategy.hpp"

/// What a strategy means for one operator: the device matrix, the layouts of its tensors, and what is left to be added
/// up. The matrix has an axis for each dimension that can be cut, in the order of the signature, and behind them one of
/// devices that compute the same, if there are more devices than parts.
namespace hcclsim::hccl {

struct OperatorSharding {
  Signature signature;
  DeviceMatrix matrix;
  /// Of each dimension, the axes of the matrix that cut it, counted from the right, the one that varies slowest first.
  std::vector<std::vector<std::uint32_t>> axes;
  std::vector<TensorLayout> inputs;
  std::vector<TensorLayout> parameters;
  std::vector<TensorLayout> outputs;   ///< as the operator leaves them
  std::vector<std::uint32_t> partial;  ///< axes of the matrix over which the output is still to be added up
  /// Axis of the output that the sum is cut along (reduce_scatter); none: every device gets all of it (all_reduce).
  std::optional<std::uint32_t> scattered{};
  bool gathers_again = false;    ///< as in the strategy
  std::uint32_t group_size = 0;  ///< as in the strategy
  bool on_host = false;          ///< as in the strategy

  /// Layout of the first output once it is added up.
  [[nodiscard]] TensorLayout result() const;
  /// Parts that a dimension is cut into; 1 if there is none of this name.
  [[nodiscard]] std::uint32_t cut(std::string_view dimension) const;
  /// Groups of the devices that differ in axes of the matrix, counted from the right.
  [[nodiscard]] std::vector<std::vector<Rank>> groups(const std::vector<std::uint32_t>& from_right) const;
};

/// Applies a strategy; without one (nullptr) the operator is batch parallel: its batch is cut into as many parts as it
/// and the devices have in common, and nothing else is. Throws Error(bad_input, "strategy") that names the operator,
/// the value and what is accepted: numbers of tensors or axes that the operator does not have, a cut of 0, one that is
/// no power of two while the number of devices is one, one that does not divide its axis or its heads, that cuts what
/// has to be whole, or differs between tensors with a common dimension; more parts than devices, or a number that does
/// not divide theirs; an output that the operator cannot leave; a table of tokens cut by rows and tokens cut too,
/// unless every device has a part of its own; a manual_split of other operators than token_embedding or beside a
/// Layout, with another number of parts than the rows of the table and the positions, with a batch that is cut, with
/// fewer rows than positions in a part, with another sum than the rows of the table, or with devices that have no part;
/// a table on the host that not every device has a part of its own of; a group_size of other operators than batch_norm,
/// or one that is no power of two or does not divide the devices that share a channel.
[[nodiscard]] OperatorSharding shard_operator(const WholeGraph& whole, models::OperatorId id,
                                              const OperatorStrategy* strategy, Rank devices);

}  // namespace hcclsim::hccl
