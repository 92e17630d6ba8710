#pragma once

#include <optional>

#include "models/onnx/network.hpp"

/// Computes what depends on constants and shapes alone, as exporters write it around reshapes, masks and positions.
namespace hcclsim::models::onnx {

/// The only output of a node whose inputs are constants; nothing if they are not known, the operator is none of those
/// that are computed, or the result has more than max_values elements.
[[nodiscard]] std::optional<Constant> fold(const Network& network, const Node& node);

}  // namespace hcclsim::models::onnx
