#pragma once

#include <cstdint>
#include <string>

#include "tests/support/training/sharded_training.hpp"

/// Random small networks, cut at random over random devices, with what goes along in training: each a training that
/// has to come to what one device comes to.
namespace hcclsim::test {

/// Rows, tokens, transformers, images or experts; strategies with powers of two, with device matrices of their own, or
/// those of transformers; 2, 4 or 8 devices in 1 or 2 stages, micro-batches, parameters that are shared, layers that
/// are computed again. Strategies fit together.
[[nodiscard]] ShardedTraining random_training(std::uint32_t seed);

/// A line for each strategy.
[[nodiscard]] std::string to_string(const ShardedTraining& training);

}  // namespace hcclsim::test
