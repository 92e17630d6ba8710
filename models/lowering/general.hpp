#pragma once

#include "models/lowering/parameter_gradients.hpp"
#include "models/lowering/state.hpp"

/// Kernels of the operators that say themselves what they do: `vector` and `product` (models/graph.hpp).
namespace hcclsim::models {

/// One kernel that reads all inputs and parameters; the caller writes its output.
void launch_general(LoweringState& state, OperatorId id, Phase phase);
/// One kernel for the products; the caller writes their result.
void launch_matrix_product(LoweringState& state, OperatorId id, Phase phase);

/// One kernel writes the gradients of all inputs that have one, and of the parameters; `dy` is that of the output.
void differentiate_general(LoweringState& state, ParameterGradients& gradients, OperatorId id, TensorId dy);
/// One product for the gradient of either factor.
void differentiate_matrix_product(LoweringState& state, ParameterGradients& gradients, const Operator& op, TensorId dy);

}  // namespace hcclsim::models
