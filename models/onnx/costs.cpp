#include "models/onnx/costs.hpp"

#include <algorithm>
#include <array>

namespace hcclsim::models::onnx {
namespace {

constexpr bool yes = true;
constexpr bool no = false;

constexpr std::array<VectorCost, 71> costs{{
    // Of two tensors; a quotient also squares its divisor.
    {"Add", 1, 0},
    {"Sub", 1, 1},
    {"Mul", 1, 2, yes},
    {"Div", 1, 4, yes},
    {"Pow", 1, 3, yes},
    {"Min", 1, 2, yes},
    {"Max", 1, 2, yes},
    {"Sum", 1, 0},
    {"Mean", 1, 1},
    {"Mod", 1, 1},
    {"Where", 1, 2, yes},
    {"PRelu", 2, 3, yes},
    // Curves: an exponential, a logarithm, a root or a power are one operation.
    {"Neg", 1, 1},
    {"Abs", 1, 1, yes},
    {"Reciprocal", 1, 2, no, yes},
    {"Sqrt", 1, 2, no, yes},
    {"Exp", 1, 1, no, yes},
    {"Log", 1, 1, yes},
    {"Erf", 1, 4, yes},
    {"Sin", 1, 2, yes},
    {"Cos", 1, 2, yes},
    {"Atan", 1, 3, yes},
    {"Floor", 1, 0},
    {"Ceil", 1, 0},
    {"Round", 1, 0},
    {"Sign", 1, 0},
    {"Clip", 2, 1, yes},
    {"LeakyRelu", 2, 2, yes},
    {"ThresholdedRelu", 2, 1, yes},
    {"Elu", 3, 3, no, yes},
    {"Selu", 4, 4, no, yes},
    {"Celu", 4, 3, no, yes},
    {"Sigmoid", 4, 3, no, yes},
    {"HardSigmoid", 3, 1, yes},
    {"HardSwish", 4, 4, yes},
    {"Mish", 8, 8, yes},
    {"Softplus", 3, 4, yes},
    {"Softsign", 3, 4, yes},
    {"Softmax", 5, 4, no, yes},
    {"LogSoftmax", 5, 4, no, yes},
    // Norms.
    {"LayerNormalization", 7, 15, yes},
    {"InstanceNormalization", 7, 11, yes},
    {"LpNormalization", 3, 6, yes},
    {"LRN", 8, 12, yes},
    {"MeanVarianceNormalization", 7, 11, yes},
    // Reductions, counted by what they read.
    {"ReduceMean", 1, 1, no, no, yes},
    {"ReduceSum", 1, 0, no, no, yes},
    {"ReduceMax", 1, 1, yes, no, yes},
    {"ReduceMin", 1, 1, yes, no, yes},
    {"ReduceProd", 1, 2, yes, no, yes},
    {"ReduceL1", 2, 1, yes, no, yes},
    {"ReduceL2", 2, 2, yes, no, yes},
    {"ReduceSumSquare", 2, 1, yes, no, yes},
    {"ReduceLogSum", 2, 2, yes, no, yes},
    {"ReduceLogSumExp", 3, 3, yes, no, yes},
    {"ArgMax", 1, 0, no, no, yes},
    {"ArgMin", 1, 0, no, no, yes},
    {"CumSum", 1, 1},
    // Copies.
    {"Pad", 0, 0},
    {"Slice", 0, 0},
    {"Gather", 0, 0},
    {"GatherElements", 0, 0},
    {"GatherND", 0, 0},
    {"ScatterElements", 0, 0},
    {"ScatterND", 0, 0},
    {"Concat", 0, 0},
    {"Split", 0, 0},
    {"DepthToSpace", 0, 0},
    {"SpaceToDepth", 0, 0},
    {"Resize", 4, 4},
    {"Upsample", 4, 4},
}};

}  // namespace

const VectorCost* vector_cost(std::string_view type) {
  const auto* const found = std::ranges::find(costs, type, &VectorCost::type);
  return found == costs.end() ? nullptr : found;
}

}  // namespace hcclsim::models::onnx
