#pragma once

#include <cstdint>
#include <string_view>

/// Element operations of the operators of ONNX that become work of the vector unit, counted like those of
/// models/graph.hpp.
namespace hcclsim::models::onnx {

struct VectorCost {
  std::string_view types;      ///< of the operators, with spaces between
  std::uint32_t forward = 1;   ///< operations per element of the output, of what reduces per element of the input
  std::uint32_t backward = 1;  ///< the same, for all gradients together
  bool keeps_inputs = false;
  bool keeps_output = false;
  bool reduces = false;
};

/// nullptr: it is none of these.
[[nodiscard]] const VectorCost* vector_cost(std::string_view type);

}  // namespace hcclsim::models::onnx
