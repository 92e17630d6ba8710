#pragma once

#include <onnx/onnx_pb.h>

namespace hcclsim::models::onnx {

/// Puts the nodes of one branch in the place of node number `number` of the graph, an If: its then_branch if
/// `condition`, else its else_branch. Returns false if the node has no such branch, or another number of outputs.
[[nodiscard]] bool take_branch(::onnx::GraphProto& graph, int number, bool condition);

}  // namespace hcclsim::models::onnx
