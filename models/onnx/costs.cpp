#include "models/onnx/costs.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"

namespace hcclsim::models::onnx {
namespace {

constexpr bool yes = true;
constexpr bool no = false;

constexpr std::array<VectorCost, 39> costs{{
    // Of two tensors; a quotient also squares its divisor.
    {"Add Sum", 1, 0},
    {"Sub Mean Mod", 1, 1},
    {"Mul Min Max Where", 1, 2, yes},
    {"Div", 1, 4, yes},
    {"Pow", 1, 3, yes},
    {"PRelu", 2, 3, yes},
    // Curves: an exponential, a logarithm, a root or a power are one operation.
    {"Neg", 1, 1},
    {"Abs Log", 1, 1, yes},
    {"Reciprocal Sqrt", 1, 2, no, yes},
    {"Exp", 1, 1, no, yes},
    {"Erf", 1, 4, yes},
    {"Sin Cos", 1, 2, yes},
    {"Atan", 1, 3, yes},
    {"Floor Ceil Round Sign", 1, 0},
    {"Clip ThresholdedRelu", 2, 1, yes},
    {"LeakyRelu", 2, 2, yes},
    {"Elu", 3, 3, no, yes},
    {"Selu", 4, 4, no, yes},
    {"Celu Sigmoid", 4, 3, no, yes},
    {"HardSigmoid", 3, 1, yes},
    {"HardSwish", 4, 4, yes},
    {"Mish", 8, 8, yes},
    {"Softplus Softsign", 3, 4, yes},
    {"Softmax LogSoftmax", 5, 4, no, yes},
    // Comparisons have no gradient.
    {"Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Not IsNaN IsInf OneHot", 1, 0},
    // Norms.
    {"LayerNormalization BatchNormalization", 7, 15, yes},
    {"InstanceNormalization MeanVarianceNormalization", 7, 11, yes},
    {"LpNormalization", 3, 6, yes},
    {"LRN", 8, 12, yes},
    // Reductions, counted by what they read.
    {"ReduceMean", 1, 1, no, no, yes},
    {"ReduceSum ArgMax ArgMin", 1, 0, no, no, yes},
    {"ReduceMax ReduceMin", 1, 1, yes, no, yes},
    {"ReduceProd", 1, 2, yes, no, yes},
    {"ReduceL1 ReduceSumSquare", 2, 1, yes, no, yes},
    {"ReduceL2 ReduceLogSum", 2, 2, yes, no, yes},
    {"ReduceLogSumExp", 3, 3, yes, no, yes},
    {"CumSum", 1, 1},
    // Copies.
    {"Pad Slice Gather GatherElements GatherND ScatterElements ScatterND Concat Split DepthToSpace SpaceToDepth", 0, 0},
    {"Resize Upsample", 4, 4},
}};

}  // namespace

const VectorCost* vector_cost(std::string_view type) {
  const auto* const found = std::ranges::find_if(costs, [&](const VectorCost& cost) {
    const std::vector<std::string_view> types = split(cost.types, ' ');
    return std::ranges::find(types, type) != types.end();
  });
  return found == costs.end() ? nullptr : found;
}

}  // namespace hcclsim::models::onnx
