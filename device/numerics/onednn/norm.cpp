#include <type_traits>

#include "device/numerics/onednn/layer.hpp"

/// Batch norm over the statistics of the batch (biased variance), with the ReLU behind it if that is its only consumer;
/// layer norm over the features of every row. Both have scale and shift. Statistics are fp32.
namespace hcclsim::device::onednn {
namespace {

constexpr float norm_epsilon = 1e-5F;

template <typename Forward, typename Backward>
class Norm : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    has_relu_ = is_batch && planner.absorb_relu();
    if (has_relu_) flags_ |= dnnl::normalization_flags::fuse_norm_relu;
    source_ = planner.input();
    if (!is_batch) {
      source_ = planner.in_layout(source_, matrix_layout(planner.op().shape(), planner.compute_type()));
    }
    planner.keep(source_);
    const Layout layout = planner.layout(source_);
    forward_ = {{dnnl::prop_kind::forward_training, layout, norm_epsilon, flags_}, user_scratchpad(), planner.engine()};
    mean_ = planner.new_tensor(forward_.mean_desc());
    variance_ = planner.new_tensor(forward_.variance_desc());
    const TensorId output = planner.new_tensor(is_batch ? Layout(forward_.dst_desc()) : layout);
    std::vector<Argument> arguments = inputs(planner);
    arguments.push_back({DNNL_ARG_DST, Operand::of(output)});
    if (has_relu_) {
      mask_ = planner.new_tensor(forward_.workspace_desc());
      arguments.push_back({DNNL_ARG_WORKSPACE, Operand::of(mask_)});
    }
    planner.call(forward_, Forward(forward_), std::move(arguments));
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    const TensorId output_gradient = planner.output_gradient();
    const Layout layout = planner.layout(source_);
    const typename Backward::primitive_desc backward({dnnl::prop_kind::backward, layout, layout, norm_epsilon, flags_},
                                                     user_scratchpad(), planner.engine(), forward_);
    const bool in_place = is_batch && planner.may_overwrite_output_gradient();
    const TensorId gradient = in_place ? output_gradient : planner.new_tensor(layout);
    // The shift is no argument in oneDNN's manual, but its kernel counts it among the inputs.
    std::vector<Argument> arguments = inputs(planner);
    arguments.push_back({DNNL_ARG_DIFF_DST, Operand::of(output_gradient)});
    arguments.push_back({DNNL_ARG_DIFF_SRC, Operand::of(gradient)});
    arguments.push_back({DNNL_ARG_DIFF_SCALE, planner.gradient(0)});
    arguments.push_back({DNNL_ARG_DIFF_SHIFT, planner.gradient(1)});
    if (has_relu_) arguments.push_back({DNNL_ARG_WORKSPACE, Operand::of(mask_)});
    planner.call(backward, Backward(backward), std::move(arguments));
    planner.give_gradient(0, gradient);
  }

 private:
  static constexpr bool is_batch = std::is_same_v<Forward, dnnl::batch_normalization_forward>;

  [[nodiscard]] std::vector<Argument> inputs(Planner& planner) const {
    return {{DNNL_ARG_SRC, Operand::of(source_)},
            {DNNL_ARG_SCALE, planner.weight(0, planner.stored(0))},
            {DNNL_ARG_SHIFT, planner.weight(1, planner.stored(1))},
            {DNNL_ARG_MEAN, Operand::of(mean_)},
            {DNNL_ARG_VARIANCE, Operand::of(variance_)}};
  }

  typename Forward::primitive_desc forward_;
  dnnl::normalization_flags flags_ = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  bool has_relu_ = false;
  TensorId source_ = {};
  TensorId mean_ = {};
  TensorId variance_ = {};
  TensorId mask_ = {};
};

}  // namespace

std::unique_ptr<Layer> make_batch_norm() {
  return std::make_unique<Norm<dnnl::batch_normalization_forward, dnnl::batch_normalization_backward>>();
}

std::unique_ptr<Layer> make_layer_norm() {
  return std::make_unique<Norm<dnnl::layer_normalization_forward, dnnl::layer_normalization_backward>>();
}

}  // namespace hcclsim::device::onednn
