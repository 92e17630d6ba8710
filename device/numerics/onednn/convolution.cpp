#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

/// Convolution with groups, strides, padding and bias. oneDNN chooses the layouts. The weight is stored in the layout
/// in which the kernel of its gradient writes, unless that layout has padding. So the gradient is never reordered in a
/// step, and the weight rarely is.
class Convolution : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    describe(planner);
    source_ = planner.in_layout(planner.input(), forward_.src_desc());
    planner.keep(planner.input());
    planner.keep(source_);
    const TensorId output = planner.new_tensor(forward_.dst_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source_)},
                                    {DNNL_ARG_WEIGHTS, planner.weight(0, forward_.weights_desc())},
                                    {DNNL_ARG_DST, Operand::of(output)}};
    if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, planner.weight(1, planner.stored(1))});
    planner.call(forward_, Forward(forward_), std::move(arguments));
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    plan_parameters(planner);
    if (!planner.input_needs_gradient()) return;
    const BackwardData::primitive_desc backward(
        {dnnl::algorithm::convolution_direct, any_source_, any_weight_, any_destination_, strides_, padding_, padding_},
        user_scratchpad(), planner.engine(), forward_);
    const TensorId gradient = planner.new_tensor(backward.diff_src_desc());
    const TensorId output_gradient = planner.in_layout(planner.output_gradient(), backward.diff_dst_desc());
    planner.call(backward, BackwardData(backward),
                 {{DNNL_ARG_DIFF_DST, Operand::of(output_gradient)},
                  {DNNL_ARG_WEIGHTS, planner.weight(0, backward.weights_desc())},
                  {DNNL_ARG_DIFF_SRC, Operand::of(gradient)}});
    planner.give_gradient(0, gradient);
  }

 private:
  /// Asks oneDNN for kernels and layouts, and decides how the weight is stored.
  void describe(Planner& planner) {
    const models::Operator& op = planner.op();
    const models::Shape& in = planner.input_shape();
    constexpr auto any = dnnl::memory::format_tag::any;
    constexpr auto f32 = dnnl::memory::data_type::f32;
    const auto type = planner.compute_type();
    const dnnl_dim_t groups = op.groups;
    dnnl::memory::dims weight{op.shape().channels() / groups, in.channels() / groups, op.window.kernel,
                              op.window.kernel};
    if (groups > 1) weight.insert(weight.begin(), groups);
    any_source_ = {{in.batch(), in.channels(), in.height(), in.width()}, type, any};
    any_destination_ = {
        {op.shape().batch(), op.shape().channels(), op.shape().height(), op.shape().width()}, type, any};
    any_weight_ = {weight, type, any};
    has_bias_ = op.parameters.size() == 2;
    if (has_bias_) bias_ = planner.stored(1);
    strides_ = {op.window.stride, op.window.stride};
    padding_ = {op.window.padding, op.window.padding};
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    forward_ = {{dnnl::prop_kind::forward_training, direct, any_source_, any_weight_, bias_, any_destination_, strides_,
                 padding_, padding_},
                user_scratchpad(),
                planner.engine()};
    backward_weights_ = {
        {direct, any_source_, Layout(weight, f32, any), bias_, any_destination_, strides_, padding_, padding_},
        user_scratchpad(),
        planner.engine(),
        forward_};
    const Layout plain = row_major(weight, f32);
    const Layout written = backward_weights_.diff_weights_desc();
    planner.store(0, plain, written.get_size() == plain.get_size() ? written : plain);
  }

  void plan_parameters(Planner& planner) const {
    const BackwardWeights::primitive_desc& backward = backward_weights_;
    const bool as_forward = backward.src_desc() == forward_.src_desc();
    const TensorId source = as_forward ? source_ : planner.in_layout(planner.input(), backward.src_desc());
    const TensorId output_gradient = planner.in_layout(planner.output_gradient(), backward.diff_dst_desc());
    planner.write_gradient(0, backward.diff_weights_desc(), [&](Operand weight_gradient) {
      std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source)},
                                      {DNNL_ARG_DIFF_DST, Operand::of(output_gradient)},
                                      {DNNL_ARG_DIFF_WEIGHTS, weight_gradient}};
      if (has_bias_) arguments.push_back({DNNL_ARG_DIFF_BIAS, planner.gradient(1)});
      planner.call(backward, BackwardWeights(backward), std::move(arguments));
    });
  }

  Layout any_source_;
  Layout any_weight_;
  Layout any_destination_;
  Layout bias_;  ///< empty without one
  bool has_bias_ = false;
  dnnl::memory::dims strides_;
  dnnl::memory::dims padding_;
  Forward::primitive_desc forward_;
  BackwardWeights::primitive_desc backward_weights_;
  TensorId source_ = {};
};

}  // namespace

std::unique_ptr<Layer> make_convolution() { return std::make_unique<Convolution>(); }

}  // namespace hcclsim::device::onednn
