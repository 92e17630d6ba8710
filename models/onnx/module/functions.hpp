#pragma once

#include <onnx/onnx_pb.h>

#include <string>

/// Functions of a file: operators that it describes itself, by nodes. Exporters write a module of a network so.
namespace hcclsim::models::onnx {

/// Puts the nodes of its functions in the place of the nodes that call them, and forgets the functions. Names of nodes
/// and tensors inside begin with the name of the call and "/". Throws Error(bad_input, "onnx") for a function that
/// calls itself, calls with more tensors than it takes, or comes to more than a million nodes.
void expand_functions(const std::string& path, ::onnx::ModelProto& model);

}  // namespace hcclsim::models::onnx
