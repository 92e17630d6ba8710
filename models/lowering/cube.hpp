#pragma once

#include <initializer_list>

#include "models/graph.hpp"
#include "models/lowering/kernel.hpp"

/// Convolutions, linear operators and attention as the matrix products that the cube unit sees. The unit works on tiles
/// of 16x16x16, so before the products are formed
///  - an image is padded to a multiple of 16 pixels, each image by itself: 7x7 counts 64;
///  - the channels of a convolution are padded to 16, those of a network's input (at most 4) to 4;
///  - groups are merged until they fill 16 channels, with zeros off the block diagonal (depthwise convolutions).
namespace hcclsim::models {

/// Forward: m = batch · pixels of the output, n = channels of the output, k = channels of the input · window.
[[nodiscard]] CubeWork forward_work(const Graph& graph, const Operator& op);

/// Gradient of the input: m = batch · pixels of the input, n = its channels, k = channels of the output · window. With
/// a stride and a window larger than 1x1 it runs on the output's gradient with zeros inserted, which is as large as the
/// input; a strided 1x1 convolution needs the pixels of its output only.
[[nodiscard]] CubeWork data_gradient_work(const Graph& graph, const Operator& op);

/// Gradient of the weight: m = channels of the output, n = channels of the input · window, k = batch · pixels of the
/// output, cut over the cores in all three dimensions.
[[nodiscard]] CubeWork weight_gradient_work(const Graph& graph, const Operator& op);

/// The products of attention, one group per sequence and head, with or without a causal mask.
/// Scores (queries times keys) and the gradient of the probabilities: every position with every other over the `width`
/// features of a head of keys or values.
[[nodiscard]] CubeWork attention_scores_work(const Operator& op, std::uint32_t width);
/// The context (probabilities times values) and the gradients of queries, keys and values: `width` features of a head
/// for every position, over all positions.
[[nodiscard]] CubeWork attention_context_work(const Operator& op, std::uint32_t width);
/// Several of them in one kernel, which computes nothing of what a causal mask hides, nor of positions in other
/// documents or beyond a window; of different widths the mean,
/// rounded up. Scores go from the cube to the vector unit through L2, in fp32.
[[nodiscard]] CubeWork fused_scores_work(const Operator& op, std::initializer_list<std::uint32_t> widths);
[[nodiscard]] CubeWork fused_context_work(const Operator& op, std::initializer_list<std::uint32_t> widths);
/// The scores that such a kernel computes.
[[nodiscard]] std::uint64_t computed_scores(const Operator& op);

}  // namespace hcclsim::models
