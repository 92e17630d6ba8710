#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/sharding/sharded_stages.hpp"
#include "models/graph_builder.hpp"

/// A network of two layers whose operators pairs of devices share, cut by hand.
namespace hcclsim::test {

/// What a device computes: 8 rows of 8 features; of each layer its 6 of 12 inner features, the sum over its pair, and
/// what the layer began with added; a whole head of 3 classes. Devices 2i and 2i + 1 are pair i, pairs have rows of
/// their own. Parameters: up and down of each layer with 48 numbers each, head with 24.
inline hccl::ShardedGraph paired_layers(Rank devices) {
  models::GraphBuilder builder("two layers", {8, 8});
  models::Value x = models::GraphBuilder::input();
  for (const char* const layer : {"first", "second"}) {
    builder.begin_layer();
    const std::string name = layer;
    const models::Value inner = builder.relu(name + ".relu", builder.linear(name + ".up", x, 6, false));
    const models::Value part = builder.linear(name + ".down", inner, 8, false);
    x = builder.add(name + ".add", builder.all_reduce(name + ".sum", part, {.family = 0, .ranks = 2}), x);
  }
  builder.end_layers();
  const models::Value logits = builder.linear("head", x, 3, false);
  hccl::ShardedGraph sharded = hccl::replicated(std::move(builder).finish(logits), devices);
  hccl::DeviceGroups pairs;
  hccl::DeviceGroups columns(2);
  hccl::DeviceGroups all(1);
  for (Rank device = 0; device < devices; ++device) {
    if (device % 2 == 0) pairs.emplace_back();
    pairs.back().push_back(device);
    columns[device % 2].push_back(device);
    all.front().push_back(device);
  }
  sharded.families = {pairs};
  const bool alone = devices == 2;
  if (!alone) sharded.families.push_back(columns);
  const std::uint32_t of_layers = alone ? hccl::ShardedGraph::no_family : 1;
  const std::uint32_t of_head = alone ? 0 : 2;
  if (!alone) sharded.families.push_back(all);
  sharded.mirrors = {of_layers, of_layers, of_layers, of_layers, of_head};
  const auto rows = static_cast<std::uint32_t>(devices / 2);
  const hccl::DeviceMatrix matrix{{rows, 2}};
  for (int layer = 0; layer < 2; ++layer) {
    sharded.parameters.push_back({matrix, {{0}, {}}, {12, 8}});
    sharded.parameters.push_back({matrix, {{}, {0}}, {8, 12}});
  }
  sharded.parameters.push_back({matrix, {{}, {}}, {3, 8}});
  return sharded;
}

}  // namespace hcclsim::test
