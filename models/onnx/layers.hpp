#pragma once

#include <string>
#include <string_view>

namespace hcclsim::models::onnx {

/// The layer that a name belongs to: all of it as far as its first part that is a number or ends with "_" and one, such
/// as "h.0" of "h.0.attn.c_attn.weight", "encoder_layer_3" of "encoder_layer_3.ln_1" and "model.layers.2" of
/// "/model/layers.2/MatMul". Empty: none.
[[nodiscard]] std::string layer_of(std::string_view path);

/// In a network without such numbers every operator with weights is a layer: "encoder.fc1" of "encoder.fc1.weight".
/// Empty: none.
[[nodiscard]] std::string operator_of(std::string_view path);

}  // namespace hcclsim::models::onnx
