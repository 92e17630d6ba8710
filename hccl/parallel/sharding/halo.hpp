#pragma once

#include <cstdint>
#include <string_view>

#include "models/graph.hpp"

/// Images cut along height or width: a window at the border of a part reads pixels of its neighbours.
namespace hcclsim::hccl {

/// Pixels that a part of an axis of an image needs of its neighbours, or at the ends of the whole axis of its padding.
/// Part j of c of H pixels makes Ho / c of Ho: with a window of k pixels, stride s and padding P it begins P pixels
/// before its first one and ends k − s − P behind its last one. Parts are equal only if Ho · s = H; a window that is
/// not larger than the stride needs no neighbours, and no padding. Throws Error(bad_input, "strategy") that names the
/// operator otherwise, or if a neighbour does not have that many pixels.
/// Source: MindSpore r2.3, frontend/parallel/ops_info/conv2d_info.
[[nodiscard]] models::Border border_of_part(std::string_view op, const models::Window& window, std::uint32_t input,
                                            std::uint32_t output, std::uint32_t parts);

}  // namespace hcclsim::hccl
