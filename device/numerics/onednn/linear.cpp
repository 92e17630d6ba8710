#include "base/error.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

/// output = input · weightᵀ + bias, rows × features.
class Linear : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Layout source = matrix_layout(planner.input_shape(), planner.compute_type());
    const Layout destination = matrix_layout(planner.op().shape(), planner.compute_type());
    weight_ = Layout(planner.stored(0).dims(), planner.compute_type(), dnnl::memory::format_tag::ab);
    has_bias_ = planner.op().parameters.size() == 2;
    bias_ = has_bias_ ? planner.stored(1) : Layout();
    forward_ = {
        {dnnl::prop_kind::forward_training, source, weight_, bias_, destination}, user_scratchpad(), planner.engine()};
    source_ = planner.in_layout(planner.input(), source);
    planner.keep(source_);
    const TensorId output = planner.new_tensor(destination);
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source_)},
                                    {DNNL_ARG_WEIGHTS, planner.weight(0, weight_)},
                                    {DNNL_ARG_DST, Operand::of(output)}};
    if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, planner.weight(1, bias_)});
    planner.call(forward_, dnnl::inner_product_forward(forward_), std::move(arguments));
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    plan_parameters(planner);
    if (!planner.input_needs_gradient()) return;
    const Layout source = planner.layout(source_);
    const dnnl::inner_product_backward_data::primitive_desc backward(
        {source, weight_, planner.layout(planner.output_gradient())}, user_scratchpad(), planner.engine(), forward_);
    const TensorId gradient = planner.new_tensor(source);
    planner.call(backward, dnnl::inner_product_backward_data(backward),
                 {{DNNL_ARG_DIFF_DST, Operand::of(planner.output_gradient())},
                  {DNNL_ARG_WEIGHTS, planner.weight(0, weight_)},
                  {DNNL_ARG_DIFF_SRC, Operand::of(gradient)}});
    planner.give_gradient(0, gradient);
  }

 private:
  void plan_parameters(Planner& planner) const {
    if (planner.is_begun(0)) internal_error("{}: its weight already has a gradient", planner.op().name);
    const dnnl::inner_product_backward_weights::primitive_desc backward(
        {planner.layout(source_), planner.stored(0), bias_, planner.layout(planner.output_gradient())},
        user_scratchpad(), planner.engine(), forward_);
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source_)},
                                    {DNNL_ARG_DIFF_DST, Operand::of(planner.output_gradient())},
                                    {DNNL_ARG_DIFF_WEIGHTS, planner.gradient(0)}};
    if (has_bias_) arguments.push_back({DNNL_ARG_DIFF_BIAS, planner.gradient(1)});
    planner.call(backward, dnnl::inner_product_backward_weights(backward), std::move(arguments));
  }

  dnnl::inner_product_forward::primitive_desc forward_;
  Layout weight_;  ///< as computed with
  Layout bias_;    ///< empty without one
  bool has_bias_ = false;
  TensorId source_ = {};
};

}  // namespace

std::unique_ptr<Layer> make_linear() { return std::make_unique<Linear>(); }

}  // namespace hcclsim::device::onednn
