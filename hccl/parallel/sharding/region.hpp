#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"

/// Functional sharding, MindSpore's shard(fn, in_strategy, out_strategy, parameter_plan): a part of a network is cut as
/// its inputs and some of its parameters are, the rest stays batch parallel. Strategies of the operators inside follow
/// by propagation, in forward order: each takes the cuts of its parameters that are planned, then those that its inputs
/// come with, as far as it can be cut so and its devices suffice, and hands on what its output has then. At the borders
/// of the region tensors are redistributed like everywhere.
namespace hcclsim::hccl {

struct ShardRegion {
  std::set<models::OperatorId> operators;
  /// Of each tensor that comes from outside, in the order in which they are read first; none: its samples are cut over
  /// all devices.
  std::vector<std::optional<Cuts>> inputs;
  std::map<std::string, Cuts> parameters;  ///< by name
};

/// The tensors that a region reads from outside, in the order of ShardRegion::inputs.
[[nodiscard]] std::vector<models::Value> inputs_of_region(const models::Graph& whole,
                                                          const std::set<models::OperatorId>& operators);

/// The strategies of the operators of a region. Throws Error(bad_input, "value-error") for another number of inputs,
/// for cuts of a tensor or a parameter with another number of axes, that do not divide them, or that its operator
/// cannot have.
[[nodiscard]] StrategyMap region_strategies(const models::Graph& whole, const ShardRegion& region, Rank devices);

}  // namespace hcclsim::hccl
