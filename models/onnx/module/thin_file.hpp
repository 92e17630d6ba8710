#pragma once

#include <optional>
#include <string>

namespace hcclsim::models::onnx {

/// The bytes of a file of ONNX, a ModelProto, without the numbers of its large initializers, which nobody reads: a file
/// of gigabytes is skipped through, not read. Empty: the bytes are no messages of protobuf, or the file ends within
/// one. Throws Error(bad_input, "onnx") if it cannot be read.
[[nodiscard]] std::optional<std::string> read_without_weights(const std::string& path);

}  // namespace hcclsim::models::onnx
