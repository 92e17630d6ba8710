#pragma once

#include <onnx/onnx_pb.h>

namespace hcclsim::models::onnx {

/// Puts what they compute in the place of operators of com.microsoft that optimizers of ONNX Runtime make of several
/// nodes (attention, norms, GELU, products), and nothing in the place of reductions over no axes. What a node keeps for
/// the next token is no output of the network any more. Operators in forms that this does not know stay.
void write_fused_out(::onnx::ModelProto& model);

}  // namespace hcclsim::models::onnx
