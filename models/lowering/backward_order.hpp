#pragma once

#include <vector>

#include "models/graph.hpp"

/// The order in which the graph engine launches the backward kernels, and with it the *production order* of the
/// gradients (index 0 is finished first; HCCL's numbering). The rule, which gives the vendor's record of ResNet50:
///
///  1. Breadth first from the loss: by distance from it, where the distance of an operator is the longest path.
///  2. A strided convolution is not launched early: if its input is a fork, it waits for the consumer of that fork
///     that is farthest from the loss. So the strided shortcut of a residual block comes after the block's first
///     convolution, the unstrided one of ResNet50's first block directly after the convolution it is added to.
///  3. At the same distance batch norms come first, the last of the forward pass before others (the shortcut's before
///     that of the main branch); all other operators follow in forward order.
///
/// Within an operator the gradient of the bias (beta) comes before that of the weight (gamma), and both before the
/// gradient of the input.
namespace hcclsim::models {

/// All operators but the input batch, in the order of their backward kernels. O(operators · log operators).
[[nodiscard]] std::vector<OperatorId> backward_order(const Graph& graph);

}  // namespace hcclsim::models
