#pragma once

#include <memory>

#include "device/numerics/onednn/planner.hpp"

/// A layer plans one operator. plan_forward adds the tasks that compute the operator's output and tells the planner
/// which tensor it is; plan_backward, called once for an operator whose output has a gradient, adds those that compute
/// the gradients of its parameters and of its inputs. What plan_backward needs from plan_forward is kept in members.
/// Layers live only while the Plan is made; tasks must not refer to them.
namespace hcclsim::device::onednn {

class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  virtual void plan_forward(Planner& planner) = 0;
  virtual void plan_backward(Planner& planner) = 0;
};

/// Layer for an operator. Throws Error(bad_input) of kind "numerics" for one that cannot be computed.
[[nodiscard]] std::unique_ptr<Layer> make_layer(const models::Graph& graph, const models::Operator& op);

// By the names of the kinds of operators.
[[nodiscard]] std::unique_ptr<Layer> make_convolution();
[[nodiscard]] std::unique_ptr<Layer> make_linear();
[[nodiscard]] std::unique_ptr<Layer> make_batch_norm();
[[nodiscard]] std::unique_ptr<Layer> make_relu(float upper_bound);  ///< infinite for the common ReLU
[[nodiscard]] std::unique_ptr<Layer> make_max_pool();
[[nodiscard]] std::unique_ptr<Layer> make_average_pool(const models::Shape& in, const models::Shape& out);
[[nodiscard]] std::unique_ptr<Layer> make_add();
[[nodiscard]] std::unique_ptr<Layer> make_flatten();
[[nodiscard]] std::unique_ptr<Layer> make_loss();
[[nodiscard]] std::unique_ptr<Layer> make_binary_loss();
[[nodiscard]] std::unique_ptr<Layer> make_dropout();
[[nodiscard]] std::unique_ptr<Layer> make_gelu();
[[nodiscard]] std::unique_ptr<Layer> make_layer_norm();
[[nodiscard]] std::unique_ptr<Layer> make_token_embedding();
[[nodiscard]] std::unique_ptr<Layer> make_position_embedding();
[[nodiscard]] std::unique_ptr<Layer> make_attention();
[[nodiscard]] std::unique_ptr<Layer> make_tanh();
[[nodiscard]] std::unique_ptr<Layer> make_swiglu();
[[nodiscard]] std::unique_ptr<Layer> make_rms_norm();
[[nodiscard]] std::unique_ptr<Layer> make_class_token();
[[nodiscard]] std::unique_ptr<Layer> make_rotary(const models::Operator& op);
[[nodiscard]] std::unique_ptr<Layer> make_select_rows(const models::Graph& graph, const models::Operator& op);
[[nodiscard]] std::unique_ptr<Layer> make_patches();
[[nodiscard]] std::unique_ptr<Layer> make_join_rows();
[[nodiscard]] std::unique_ptr<Layer> make_sum_rows();
[[nodiscard]] std::unique_ptr<Layer> make_ring_attention();  ///< over the positions of a group
[[nodiscard]] std::unique_ptr<Layer> make_bias();
[[nodiscard]] std::unique_ptr<Layer> make_group_batch_norm();  ///< over the samples and pixels of a group
[[nodiscard]] std::unique_ptr<Layer> make_pad();
[[nodiscard]] std::unique_ptr<Layer> make_reshape();
[[nodiscard]] std::unique_ptr<Layer> make_neighbour_exchange();
[[nodiscard]] std::unique_ptr<Layer> make_join_heads();
[[nodiscard]] std::unique_ptr<Layer> make_repeat_heads();
[[nodiscard]] std::unique_ptr<Layer> make_route(const models::Operator& op);
[[nodiscard]] std::unique_ptr<Layer> make_dispatch();
[[nodiscard]] std::unique_ptr<Layer> make_expert_linear();
[[nodiscard]] std::unique_ptr<Layer> make_combine();
[[nodiscard]] std::unique_ptr<Layer> make_split();
[[nodiscard]] std::unique_ptr<Layer> make_concat();
[[nodiscard]] std::unique_ptr<Layer> make_slice();
[[nodiscard]] std::unique_ptr<Layer> make_collective();
[[nodiscard]] std::unique_ptr<Layer> make_send();
[[nodiscard]] std::unique_ptr<Layer> make_receive();
[[nodiscard]] std::unique_ptr<Layer> make_factorization(const models::Graph& graph, const models::Operator& op);

}  // namespace hcclsim::device::onednn
