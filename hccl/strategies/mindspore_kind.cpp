#include "hccl/strategies/mindspore_kind.hpp"

#include "base/error.hpp"

namespace hcclsim::hccl {

using models::Operator;

std::string_view name_of(MindSporeKind kind) {
  using enum MindSporeKind;
  switch (kind) {
    case virtual_dataset:
      return "virtual dataset";
    case matmul:
      return "MatMul";
    case batch_matmul:
      return "BatchMatMul";
    case convolution:
      return "Conv2D";
    case pooling:
      return "pooling";
    case batch_norm:
      return "BatchNorm";
    case loss:
      return "loss";
    case elementwise:
      return "element-wise";
    case softmax:
      return "Softmax";
    case reduce:
      return "reduction";
    case gather:
      return "Gather";
    case layer_norm:
      return "LayerNorm";
    case reshape:
      return "Reshape";
    case slice:
      return "StridedSlice";
  }
  internal_error("no kind of MindSpore's operators: {}", static_cast<int>(kind));
}

bool is_eliminated(MindSporeKind kind) {
  using enum MindSporeKind;
  return kind != virtual_dataset && kind != matmul && kind != convolution && kind != pooling && kind != batch_norm &&
         kind != loss;
}

std::vector<MindSporeKind> mindspore_operators(const Operator& op) {
  using enum MindSporeKind;
  using Kind = models::OperatorKind;
  switch (op.kind) {
    case Kind::input:
      return {virtual_dataset};
    case Kind::convolution:
      return op.parameters.size() > 1 ? std::vector{convolution, elementwise} : std::vector{convolution};
    case Kind::linear:
      return op.parameters.size() > 1 ? std::vector{matmul, elementwise} : std::vector{matmul};
    case Kind::batch_norm:
      return {batch_norm};
    case Kind::max_pool:
      return {pooling};
    case Kind::average_pool:  // to one pixel MindSpore's networks take a ReduceMean
      return op.shape().image() == 1 ? std::vector{reduce} : std::vector{pooling};
    case Kind::relu:
    case Kind::relu6:
    case Kind::add:
    case Kind::bias:
    case Kind::dropout:
    case Kind::gelu:
    case Kind::tanh:
      return {elementwise};
    case Kind::swiglu:  // SiLU and a product
      return {elementwise, elementwise};
    case Kind::rotary:  // x · cos + turned x · sin
      return {elementwise, elementwise, elementwise};
    case Kind::layer_norm:
    case Kind::rms_norm:
      return {layer_norm};
    case Kind::token_embedding:
      return {gather};
    case Kind::position_embedding:
    case Kind::segment_embedding:
      return op.inputs.front().op == 0 ? std::vector{gather} : std::vector{gather, elementwise};
    case Kind::attention:
      return {batch_matmul, softmax, batch_matmul};
    case Kind::route:  // the gates; choosing the greatest is a part of it
      return {softmax};
    case Kind::dispatch:
    case Kind::combine:
      return {batch_matmul};
    case Kind::expert_linear:
      return op.parameters.size() > 1 ? std::vector{batch_matmul, elementwise} : std::vector{batch_matmul};
    case Kind::flatten:
    case Kind::patches:
    case Kind::join_rows:
    case Kind::reshape:
      return {reshape};
    case Kind::sum_rows:
      return op.parameters.empty() ? std::vector{reduce} : std::vector{reduce, elementwise};
    case Kind::factorization:  // (Σv)², Σv², their difference, the sum over the features
      return {reduce, elementwise, elementwise, reduce, elementwise, reduce};
    case Kind::loss:
    case Kind::binary_loss:
      return {loss};
    default:  // class_token, select_rows, split, concat, slice
      return {slice};
  }
}

}  // namespace hcclsim::hccl
