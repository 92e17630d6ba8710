#include "device/numerics/onednn/layer.hpp"

/// Layer norm over the features of every row, with scale and shift. Statistics are fp32.
namespace hcclsim::device::onednn {
namespace {

constexpr float layer_norm_epsilon = 1e-5F;
const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

class LayerNorm : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Layout layout = matrix_layout(planner.op().shape(), planner.compute_type());
    in_ = planner.in_layout(planner.input(), layout);
    forward_ = {
        {dnnl::prop_kind::forward_training, layout, layer_norm_epsilon, flags}, user_scratchpad(), planner.engine()};
    mean_ = planner.new_tensor(forward_.mean_desc());
    variance_ = planner.new_tensor(forward_.variance_desc());
    const TensorId out = planner.new_tensor(layout);
    planner.call(forward_, dnnl::layer_normalization_forward(forward_),
                 {{DNNL_ARG_SRC, Operand::of(in_)},
                  {DNNL_ARG_SCALE, planner.weight(0, planner.stored(0))},
                  {DNNL_ARG_SHIFT, planner.weight(1, planner.stored(1))},
                  {DNNL_ARG_MEAN, Operand::of(mean_)},
                  {DNNL_ARG_VARIANCE, Operand::of(variance_)},
                  {DNNL_ARG_DST, Operand::of(out)}});
    planner.keep(in_);
    planner.set_output(out);
  }

  void plan_backward(Planner& planner) override {
    const Layout layout = matrix_layout(planner.op().shape(), planner.compute_type());
    const dnnl::layer_normalization_backward::primitive_desc backward(
        {dnnl::prop_kind::backward, layout, layout, layer_norm_epsilon, flags}, user_scratchpad(), planner.engine(),
        forward_);
    const TensorId out_slope = planner.in_layout(planner.output_gradient(), layout);
    const TensorId in_slope = planner.new_tensor(layout);
    // The shift is no argument in oneDNN's manual, but its kernel counts it among the inputs.
    planner.call(backward, dnnl::layer_normalization_backward(backward),
                 {{DNNL_ARG_SRC, Operand::of(in_)},
                  {DNNL_ARG_MEAN, Operand::of(mean_)},
                  {DNNL_ARG_VARIANCE, Operand::of(variance_)},
                  {DNNL_ARG_DIFF_DST, Operand::of(out_slope)},
                  {DNNL_ARG_SCALE, planner.weight(0, planner.stored(0))},
                  {DNNL_ARG_SHIFT, planner.weight(1, planner.stored(1))},
                  {DNNL_ARG_DIFF_SRC, Operand::of(in_slope)},
                  {DNNL_ARG_DIFF_SCALE, planner.gradient(0)},
                  {DNNL_ARG_DIFF_SHIFT, planner.gradient(1)}});
    planner.give_gradient(0, in_slope);
  }

 private:
  TensorId in_{};
  TensorId mean_{};
  TensorId variance_{};
  dnnl::layer_normalization_forward::primitive_desc forward_;
};

}  // namespace

std::unique_ptr<Layer> make_layer_norm() { return std::make_unique<LayerNorm>(); }

}  // namespace hcclsim::device::onednn
