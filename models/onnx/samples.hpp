#pragma once

#include <cstddef>
#include <map>
#include <string>

/// Where the samples of a batch are in the tensors of a file whose batch is fixed. Constants of such files hold the
/// batch, so that their shapes are inferred as they are, and multiplied behind that.
namespace hcclsim::models::onnx {

class Network;

/// The axis that numbers the samples, of each tensor that depends on the batch, or on an input with as many rows. What
/// a file of one sample does without that axis is done for each sample: its first axis then has all of them.
[[nodiscard]] std::map<std::string, std::size_t> sample_axes(const Network& network);

}  // namespace hcclsim::models::onnx
