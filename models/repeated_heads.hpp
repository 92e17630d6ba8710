#pragma once

#include <cstdint>

#include "models/graph.hpp"

namespace hcclsim::models {

/// Repeats the heads of keys and values of every attention until there are as many as of queries, where `devices`
/// cannot share them otherwise: DeepSpeed-Ulysses and MindSpeed do so before heads are exchanged. Attention that reads
/// one tensor of queries, keys and values stays as it is.
[[nodiscard]] Graph repeat_shared_heads(const Graph& graph, std::uint32_t devices);

}  // namespace hcclsim::models
