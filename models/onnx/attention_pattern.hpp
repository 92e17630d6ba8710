#pragma once

#include "models/onnx/patterns.hpp"

namespace hcclsim::models::onnx {

/// Adds the attentions of a network: around each softmax over the last axis two products of tensors, and what gives
/// their heads axes of their own, whatever its form. Rotary positions among them are known by then.
void find_attention(const Network& network, Patterns& patterns);

}  // namespace hcclsim::models::onnx
