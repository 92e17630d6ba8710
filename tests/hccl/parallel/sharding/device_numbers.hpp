#pragma once

#include <cstdint>
#include <vector>

#include "hccl/parallel/sharding/sharded_graph.hpp"

/// The forward pass of a graph that is cut over devices, computed with plain loops on all devices at once: what tests
/// compare with the whole network.
namespace hcclsim::hccl::numbers {

struct Numbers {
  models::Shape shape;
  std::vector<double> values;
};

/// The part of a tensor that begins at `offsets`.
[[nodiscard]] Numbers part_of(const Numbers& whole, const std::vector<std::uint32_t>& offsets,
                              const models::Shape& shape);

/// Of each device, what each value of the graph is (Graph::first_values); the loss is not computed. `batch` and
/// `parameters` are those of the whole, of which devices take their parts.
[[nodiscard]] std::vector<std::vector<Numbers>> compute(const ShardedGraph& sharded, const Numbers& batch,
                                                        const std::vector<Numbers>& parameters);

}  // namespace hcclsim::hccl::numbers
