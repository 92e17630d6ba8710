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
      return op.group.ranks > 1 ? make_group_batch_norm() : make_batch_norm();
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
    case OperatorKind::binary_loss:
      return make_binary_loss();
    case OperatorKind::dropout:
      return make_dropout();
    case OperatorKind::gelu:
      return make_gelu();
    case OperatorKind::layer_norm:
      return make_layer_norm();
    case OperatorKind::token_embedding:
      if (op.ahead > 0) bad_input("numerics", "{}: tokens further on are not computed with real numbers", op.name);
      return make_token_embedding();
    case OperatorKind::position_embedding:
    case OperatorKind::segment_embedding:
      return make_position_embedding();
    case OperatorKind::attention:
      if (op.met < 1) bad_input("numerics", "{}: windows and documents are not computed with real numbers", op.name);
      return op.group.ranks > 1 ? make_ring_attention() : make_attention();
    case OperatorKind::tanh:
      return make_tanh();
    case OperatorKind::swiglu:
      return make_swiglu();
    case OperatorKind::rms_norm:
      return make_rms_norm();
    case OperatorKind::class_token:
      return make_class_token();
    case OperatorKind::rotary:
      return make_rotary(op);
    case OperatorKind::select_rows:
      return make_select_rows(graph, op);
    case OperatorKind::patches:
      return make_patches();
    case OperatorKind::join_rows:
      return make_join_rows();
    case OperatorKind::sum_rows:
      return make_sum_rows();
    case OperatorKind::factorization:
      return make_factorization(graph, op);
    case OperatorKind::bias:
      return make_bias();
    case OperatorKind::pad:
      return make_pad();
    case OperatorKind::reshape:
      return make_reshape();
    case OperatorKind::neighbour_exchange:
      return make_neighbour_exchange();
    case OperatorKind::host_copy:  // the same numbers, elsewhere
      return make_reshape();
    case OperatorKind::join_heads:
      return make_join_heads();
    case OperatorKind::repeat_heads:
      return make_repeat_heads();
    case OperatorKind::route:
      return make_route(op);
    case OperatorKind::dispatch:
      return make_dispatch();
    case OperatorKind::expert_linear:
      return make_expert_linear();
    case OperatorKind::combine:
      return make_combine();
    case OperatorKind::split:
      return make_split();
    case OperatorKind::concat:
      return make_concat();
    case OperatorKind::slice:
      return make_slice();
    case OperatorKind::all_reduce:
    case OperatorKind::all_gather:
    case OperatorKind::reduce_scatter:
    case OperatorKind::all_to_all:
    case OperatorKind::broadcast:
      return make_collective();
    case OperatorKind::send:
      return make_send();
    case OperatorKind::receive:
      return make_receive();
    case OperatorKind::input:
      break;  // the planner's own
    default:
      bad_input("numerics", "{}: operators of kind {} cannot be computed with real numbers", op.name,
                models::name_of(op.kind));
  }
  internal_error("{}: no layer for operators of kind {}", op.name, models::name_of(op.kind));
}

}  // namespace hcclsim::device::onednn
