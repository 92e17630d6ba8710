#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

constexpr float batch_norm_epsilon = 1e-5F;

/// Batch norm over the statistics of the batch (biased variance), with the ReLU behind it if that is its only consumer.
class BatchNorm : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    using dnnl::normalization_flags;
    has_relu_ = planner.absorb_relu();
    auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
    if (has_relu_) flags |= normalization_flags::fuse_norm_relu;
    source_ = planner.input();
    planner.keep(source_);
    const Layout layout = planner.layout(source_);
    forward_ = {
        {dnnl::prop_kind::forward_training, layout, batch_norm_epsilon, flags}, user_scratchpad(), planner.engine()};
    mean_ = planner.new_tensor(forward_.mean_desc());
    variance_ = planner.new_tensor(forward_.variance_desc());
    const TensorId output = planner.new_tensor(forward_.dst_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source_)},
                                    {DNNL_ARG_SCALE, planner.weight(0, planner.stored(0))},
                                    {DNNL_ARG_SHIFT, planner.weight(1, planner.stored(1))},
                                    {DNNL_ARG_MEAN, Operand::of(mean_)},
                                    {DNNL_ARG_VARIANCE, Operand::of(variance_)},
                                    {DNNL_ARG_DST, Operand::of(output)}};
    if (has_relu_) {
      mask_ = planner.new_tensor(forward_.workspace_desc());
      arguments.push_back({DNNL_ARG_WORKSPACE, Operand::of(mask_)});
    }
    planner.call(forward_, dnnl::batch_normalization_forward(forward_), std::move(arguments));
    planner.set_output(output);
    flags_ = flags;
  }

  void plan_backward(Planner& planner) override {
    const TensorId output_gradient = planner.output_gradient();
    const Layout layout = planner.layout(source_);
    const dnnl::batch_normalization_backward::primitive_desc backward(
        {dnnl::prop_kind::backward, layout, layout, batch_norm_epsilon, flags_}, user_scratchpad(), planner.engine(),
        forward_);
    const TensorId gradient = planner.may_overwrite_output_gradient() ? output_gradient : planner.new_tensor(layout);
    // The shift is no argument in oneDNN's manual, but its kernel counts it among the inputs.
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source_)},
                                    {DNNL_ARG_MEAN, Operand::of(mean_)},
                                    {DNNL_ARG_VARIANCE, Operand::of(variance_)},
                                    {DNNL_ARG_SCALE, planner.weight(0, planner.stored(0))},
                                    {DNNL_ARG_SHIFT, planner.weight(1, planner.stored(1))},
                                    {DNNL_ARG_DIFF_DST, Operand::of(output_gradient)},
                                    {DNNL_ARG_DIFF_SRC, Operand::of(gradient)},
                                    {DNNL_ARG_DIFF_SCALE, planner.gradient(0)},
                                    {DNNL_ARG_DIFF_SHIFT, planner.gradient(1)}};
    if (has_relu_) arguments.push_back({DNNL_ARG_WORKSPACE, Operand::of(mask_)});
    planner.call(backward, dnnl::batch_normalization_backward(backward), std::move(arguments));
    planner.give_gradient(0, gradient);
  }

 private:
  dnnl::batch_normalization_forward::primitive_desc forward_;
  dnnl::normalization_flags flags_ = dnnl::normalization_flags::none;
  bool has_relu_ = false;
  TensorId source_ = {};
  TensorId mean_ = {};
  TensorId variance_ = {};
  TensorId mask_ = {};
};

}  // namespace

std::unique_ptr<Layer> make_batch_norm() { return std::make_unique<BatchNorm>(); }

}  // namespace hcclsim::device::onednn
