#pragma once

#include <random>

#include "base/units.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"

/// Small networks, and random ways to cut their operators over devices.
namespace hcclsim::test {

/// A layer of a transformer over 8 sequences of 8 tokens out of 16; logits by the table of the tokens.
[[nodiscard]] models::Graph tokens_network();
/// Convolutions with and without stride, batch norm, pooling and a shortcut, of 8 images of 4 x 16 x 16.
[[nodiscard]] models::Graph images_network();

/// A strategy for every operator of a graph that it can have by itself: powers of two, as many parts as there are
/// devices at most.
[[nodiscard]] hccl::StrategyMap random_strategies(const models::Graph& graph, Rank devices, std::mt19937& random);

}  // namespace hcclsim::test
