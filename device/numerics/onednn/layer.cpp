#include "device/numerics/onednn/layer.hpp"

#include <limits>

#include "base/error.hpp"

namespace hcclsim::device::onednn {

std::unique_ptr<Layer> make_layer(const models::Graph& graph, const models::Operator& op) {
  using models::OperatorKind;
  switch (op.kind) {
    case OperatorKind::convolution:
      return make_convolution();
    case OperatorKind::batch_norm:
      return make_batch_norm();
    case OperatorKind::relu:
      return make_relu(std::numeric_limits<float>::infinity());
    case OperatorKind::relu6:
      return make_relu(6);
    case OperatorKind::max_pool:
      return make_max_pool();
    case OperatorKind::average_pool:
      return make_average_pool(graph.input_of(op), op.shape());
    case OperatorKind::add:
      return make_add();
    case OperatorKind::flatten:
      return make_flatten();
    case OperatorKind::linear:
      return make_linear();
    case OperatorKind::loss:
      return make_loss();
    case OperatorKind::dropout:
      return make_dropout();
    case OperatorKind::gelu:
      return make_gelu();
    case OperatorKind::layer_norm:
      return make_layer_norm();
    case OperatorKind::token_embedding:
      return make_token_embedding();
    case OperatorKind::position_embedding:
      return make_position_embedding();
    case OperatorKind::attention:
      return make_attention();
    case OperatorKind::input:
      break;  // the planner's own
    default:
      bad_input("numerics", "{}: operators of kind {} cannot be computed with real numbers", op.name,
                models::name_of(op.kind));
  }
  internal_error("{}: no layer for operators of kind {}", op.name, models::name_of(op.kind));
}

}  // namespace hcclsim::device::onednn
