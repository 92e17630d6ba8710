#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.hpp"

/// Tuning of few new weights beside frozen ones (Hu et al. 2021, "LoRA").
namespace hcclsim::models {

struct AdapterOptions {
  std::uint32_t rank = 8;  ///< features between the two products of an adapter, at least 1
  /// Last parts of the names of linear operators that get adapters ("q_proj"); empty: all of layers, but routers.
  std::vector<std::string> targets{};
};

/// Adds B·A·x to what each of the targets makes of x: `rank` features made of x, and as many as the target makes of
/// these. Targets that read one tensor share A. Experts get adapters of their own. All other parameters are frozen:
/// they get no gradients. B starts at zero. Throws Error(bad_input, "model") for a target that no operator of a layer
/// has, with those that there are, and for a graph without any.
[[nodiscard]] Graph with_adapters(const Graph& graph, const AdapterOptions& options);

}  // namespace hcclsim::models
