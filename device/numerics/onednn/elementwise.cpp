#include <algorithm>
#include <cmath>

#include "device/numerics/onednn/layer.hpp"

/// ReLU and ReLU6, addition, flattening.
namespace hcclsim::device::onednn {
namespace {

/// min(max(x, 0), bound). The gradient passes where 0 < output < bound.
class Relu : public Layer {
 public:
  explicit Relu(float bound) : bound_(bound) {}

  void plan_forward(Planner& planner) override {
    const TensorId input = planner.input();
    const Layout layout = planner.layout(input);
    const auto algorithm = std::isinf(bound_) ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_clip_v2;
    forward_ = {{dnnl::prop_kind::forward_training, algorithm, layout, 0, clip()}, user_scratchpad(), planner.engine()};
    const TensorId output = planner.may_overwrite_input() ? input : planner.new_tensor(layout);
    planner.call(forward_, dnnl::eltwise_forward(forward_),
                 {{DNNL_ARG_SRC, Operand::of(input)}, {DNNL_ARG_DST, Operand::of(output)}});
    planner.keep(output);
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    const TensorId output_gradient = planner.output_gradient();
    const Layout layout = planner.layout(output_gradient);
    const auto algorithm = std::isinf(bound_) ? dnnl::algorithm::eltwise_relu_use_dst_for_bwd
                                              : dnnl::algorithm::eltwise_clip_v2_use_dst_for_bwd;
    const dnnl::eltwise_backward::primitive_desc backward({algorithm, layout, layout, 0, clip()}, user_scratchpad(),
                                                          planner.engine(), forward_);
    const TensorId gradient = planner.may_overwrite_output_gradient() ? output_gradient : planner.new_tensor(layout);
    planner.call(backward, dnnl::eltwise_backward(backward),
                 {{DNNL_ARG_DST, Operand::of(planner.output())},
                  {DNNL_ARG_DIFF_DST, Operand::of(output_gradient)},
                  {DNNL_ARG_DIFF_SRC, Operand::of(gradient)}});
    planner.give_gradient(0, gradient);
  }

 private:
  [[nodiscard]] float clip() const { return std::isinf(bound_) ? 0 : bound_; }

  float bound_;
  dnnl::eltwise_forward::primitive_desc forward_;
};

/// Blocked layouts round the channels up.
bool has_padding(const Layout& layout) {
  const dnnl::memory::dims sizes = layout.dims();
  return !std::equal(sizes.begin(), sizes.end(), layout.data.padded_dims);
}

/// Sum of two tensors (of layouts without padding: oneDNN 2.6 fails to apply a ReLU with it), with the ReLU behind it
/// if that is its only consumer.
class Add : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const TensorId left = planner.input(0);
    const Layout layout = planner.layout(left);
    const TensorId right = planner.in_layout(planner.input(1), layout);
    has_relu_ = !has_padding(layout) && planner.absorb_relu();
    dnnl::primitive_attr attributes = user_scratchpad();
    if (has_relu_) {
      dnnl::post_ops operations;
      operations.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
      attributes.set_post_ops(operations);
    }
    const TensorId output = planner.may_overwrite_input(0) ? left : planner.new_tensor(layout);
    planner.add(left, right, output, attributes);
    if (has_relu_) planner.keep(output);
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    TensorId gradient = planner.output_gradient();
    if (has_relu_) gradient = plan_relu(planner);
    planner.give_gradient(0, gradient, true);
    planner.give_gradient(1, gradient);
  }

 private:
  static TensorId plan_relu(Planner& planner) {
    const TensorId output_gradient = planner.output_gradient();
    const Layout layout = planner.layout(output_gradient);
    const dnnl::eltwise_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu, layout}, planner.engine());
    const dnnl::eltwise_backward::primitive_desc backward(
        {dnnl::algorithm::eltwise_relu_use_dst_for_bwd, layout, layout}, user_scratchpad(), planner.engine(), forward);
    const TensorId gradient = planner.may_overwrite_output_gradient() ? output_gradient : planner.new_tensor(layout);
    planner.call(backward, dnnl::eltwise_backward(backward),
                 {{DNNL_ARG_DST, Operand::of(planner.output())},
                  {DNNL_ARG_DIFF_DST, Operand::of(output_gradient)},
                  {DNNL_ARG_DIFF_SRC, Operand::of(gradient)}});
    return gradient;
  }

  bool has_relu_ = false;
};

/// Images to rows: only the row-major layout is both.
class Flatten : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Layout image = image_layout(planner.input_shape(), planner.compute_type());
    const Layout matrix = matrix_layout(planner.op().shape(), planner.compute_type());
    const TensorId input = planner.input();
    const TensorId plain = planner.layout(input) == matrix ? input : planner.in_layout(input, image);
    if (!planner.may_overwrite_input()) planner.keep(plain);
    planner.set_output(planner.view(plain, matrix));
  }

  void plan_backward(Planner& planner) override {
    const bool flat = planner.layout(planner.input()).dims().size() == 2;
    const Layout image = flat ? matrix_layout(planner.input_shape(), planner.compute_type())
                              : image_layout(planner.input_shape(), planner.compute_type());
    planner.give_gradient(0, planner.view(planner.output_gradient(), image));
  }
};

}  // namespace

std::unique_ptr<Layer> make_relu(float upper_bound) { return std::make_unique<Relu>(upper_bound); }
std::unique_ptr<Layer> make_add() { return std::make_unique<Add>(); }
std::unique_ptr<Layer> make_flatten() { return std::make_unique<Flatten>(); }

}  // namespace hcclsim::device::onednn
