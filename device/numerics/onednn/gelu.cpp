#include "device/numerics/onednn/layer.hpp"

/// GELU in the tanh form, in whatever layout its input has.
namespace hcclsim::device::onednn {
namespace {

class Gelu : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    in_ = planner.input();
    const Layout layout = planner.layout(in_);
    forward_ = {{dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_gelu_tanh, layout},
                user_scratchpad(),
                planner.engine()};
    const TensorId out = planner.new_tensor(layout);
    planner.call(forward_, dnnl::eltwise_forward(forward_),
                 {{DNNL_ARG_SRC, Operand::of(in_)}, {DNNL_ARG_DST, Operand::of(out)}});
    planner.keep(in_);
    planner.set_output(out);
  }

  void plan_backward(Planner& planner) override {
    const TensorId out_slope = planner.output_gradient();
    const Layout layout = planner.layout(out_slope);
    const dnnl::eltwise_backward::primitive_desc backward(
        {dnnl::algorithm::eltwise_gelu_tanh, layout, planner.layout(in_)}, user_scratchpad(), planner.engine(),
        forward_);
    const TensorId in_slope = planner.may_overwrite_output_gradient() ? out_slope : planner.new_tensor(layout);
    planner.call(backward, dnnl::eltwise_backward(backward),
                 {{DNNL_ARG_SRC, Operand::of(in_)},
                  {DNNL_ARG_DIFF_DST, Operand::of(out_slope)},
                  {DNNL_ARG_DIFF_SRC, Operand::of(in_slope)}});
    planner.give_gradient(0, in_slope);
  }

 private:
  TensorId in_{};
  dnnl::eltwise_forward::primitive_desc forward_;
};

}  // namespace

std::unique_ptr<Layer> make_gelu() { return std::make_unique<Gelu>(); }

}  // namespace hcclsim::device::onednn
