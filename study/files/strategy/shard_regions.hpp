#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"

/// A region of a network with strategies of its own (hccl/parallel/sharding/region.hpp), as MindSpore's shard() takes
/// them:
///
///     [[shard]]
///     operators = ["h.1.*"]                # patterns of names, or one
///     in_strategy = [[2, 1]]               # of each tensor that comes from outside; "None": its samples are cut
///     parameter_plan = { "h.1.mlp.c_fc.weight" = [4, 1] }
namespace hcclsim::study {

/// The strategies of the operators of a region. What MindSpore warns of, and what has no effect, is added to `notes`.
/// Throws Error(bad_input) that begins with `where`: "strategy" for unknown keys and patterns that name nothing;
/// "type-error" for an in_strategy that is no list, an out_strategy that is neither that nor "None", a device that is
/// no text, a level that is no whole number, a parameter_plan that is no table of lists; "value-error" for cuts that do
/// not fit.
[[nodiscard]] hccl::StrategyMap strategies_of_region(const std::string& where, const Json& table,
                                                     const models::Graph& network, Rank devices,
                                                     std::vector<std::string>& notes);

}  // namespace hcclsim::study
