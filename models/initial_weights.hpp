#pragma once

#include <cstdint>
#include <span>

#include "models/graph.hpp"

/// The weights that training starts from, without a file: element i of a parameter is a function of the seed, of the
/// parameter's index in parameter order (of the whole network, where the graph is a part of one) and of i
/// (base/counter_random.hpp with the index as stream), so that threads can share a tensor and every program that knows
/// the rule has the same bits. With u uniform in [−1, 1):
///
///   weight of a convolution or linear operator   u · √(6 / fan_in)   (variance 2 / fan_in: He's)
///   its bias                                     u · √(1 / fan_in)
///   scale of a batch or layer norm               (1 + u/4) · Parameter::initial_scale
///   shift of a batch or layer norm               u / 10
///   embedding                                    u
///
/// fan_in is the number of weights behind one output element. Computed in fp64 and rounded once to fp32.
namespace hcclsim::models {

/// Fills `out` with the elements `first`, `first` + 1, … of a parameter, row-major. `parameter` is an index in
/// parameter order.
void initial_weights(const Graph& graph, std::uint32_t parameter, std::uint64_t seed, std::span<float> out,
                     std::uint64_t first = 0);

}  // namespace hcclsim::models
