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
      return make_average_pool(graph.input_of(op), op.output);
    case OperatorKind::add:
      return make_add();
    case OperatorKind::flatten:
      return make_flatten();
    case OperatorKind::linear:
      return make_linear();
    case OperatorKind::loss:
      return make_loss();
    default:
      bad_input("numerics", "{}: operators of kind {} have no numbers yet", op.name, models::name_of(op.kind));
  }
}

}  // namespace hcclsim::device::onednn
