#include <algorithm>
#include <cmath>

#include "device/numerics/onednn/layer.hpp"

/// ReLU, ReLU6, GELU (in the tanh form) and tanh, addition, flattening.
namespace hcclsim::device::onednn {
namespace {

/// Plans the gradient of an element-wise function from `kept`, the values of its argument (DNNL_ARG_SRC) or result
/// (DNNL_ARG_DST).
TensorId plan_gradient(Planner& planner, const dnnl::eltwise_forward::primitive_desc& forward,
                       dnnl::algorithm algorithm, float bound, int argument, TensorId kept) {
  const TensorId out_slope = planner.output_gradient();
  const Layout layout = planner.layout(out_slope);
  const dnnl::eltwise_backward::primitive_desc backward({algorithm, layout, planner.layout(kept), 0, bound},
                                                        user_scratchpad(), planner.engine(), forward);
  const TensorId in_slope = planner.may_overwrite_output_gradient() ? out_slope : planner.new_tensor(layout);
  planner.call(backward, dnnl::eltwise_backward(backward),
               {{argument, Operand::of(kept)},
                {DNNL_ARG_DIFF_DST, Operand::of(out_slope)},
                {DNNL_ARG_DIFF_SRC, Operand::of(in_slope)}});
  return in_slope;
}

/// A function of every element, in whatever layout its input has. Its gradient is computed from its result, so that it
/// may overwrite its input, or else from its argument.
class Function : public Layer {
 public:
  Function(dnnl::algorithm forward, dnnl::algorithm backward, float bound, bool from_result)
      : forward_algorithm_(forward), backward_algorithm_(backward), bound_(bound), from_result_(from_result) {}

  void plan_forward(Planner& planner) override {
    const TensorId in = planner.input();
    const Layout layout = planner.layout(in);
    forward_ = {{dnnl::prop_kind::forward_training, forward_algorithm_, layout, 0, bound_},
                user_scratchpad(),
                planner.engine()};
    const TensorId out = from_result_ && planner.may_overwrite_input() ? in : planner.new_tensor(layout);
    planner.call(forward_, dnnl::eltwise_forward(forward_),
                 {{DNNL_ARG_SRC, Operand::of(in)}, {DNNL_ARG_DST, Operand::of(out)}});
    kept_ = from_result_ ? out : in;
    planner.keep(kept_);
    planner.set_output(out);
  }

  void plan_backward(Planner& planner) override {
    const int argument = from_result_ ? DNNL_ARG_DST : DNNL_ARG_SRC;
    planner.give_gradient(0, plan_gradient(planner, forward_, backward_algorithm_, bound_, argument, kept_));
  }

 private:
  dnnl::algorithm forward_algorithm_, backward_algorithm_;
  float bound_;
  bool from_result_;
  dnnl::eltwise_forward::primitive_desc forward_;
  TensorId kept_{};
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
    const dnnl::eltwise_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu, planner.layout(planner.output_gradient())},
        planner.engine());
    return plan_gradient(planner, forward, dnnl::algorithm::eltwise_relu_use_dst_for_bwd, 0, DNNL_ARG_DST,
                         planner.output());
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

std::unique_ptr<Layer> make_relu(float upper_bound) {
  using dnnl::algorithm;
  if (std::isinf(upper_bound)) {
    return std::make_unique<Function>(algorithm::eltwise_relu, algorithm::eltwise_relu_use_dst_for_bwd, 0, true);
  }
  return std::make_unique<Function>(algorithm::eltwise_clip_v2, algorithm::eltwise_clip_v2_use_dst_for_bwd, upper_bound,
                                    true);
}

std::unique_ptr<Layer> make_gelu() {
  constexpr auto tanh_form = dnnl::algorithm::eltwise_gelu_tanh;
  return std::make_unique<Function>(tanh_form, tanh_form, 0, false);
}

std::unique_ptr<Layer> make_tanh() {
  using dnnl::algorithm;
  return std::make_unique<Function>(algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd, 0, true);
}

std::unique_ptr<Layer> make_add() { return std::make_unique<Add>(); }
std::unique_ptr<Layer> make_flatten() { return std::make_unique<Flatten>(); }

}  // namespace hcclsim::device::onednn
