#include "device/numerics/loops/dropout.hpp"

#include "device/numerics/onednn/layer.hpp"

/// Dropout. The mask is defined for elements in row-major order, so the work is done in that layout, in fp32.
namespace hcclsim::device::onednn {
namespace {

class DropoutLayer : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    planner.set_output(plan_mask(planner, planner.input(), planner.may_overwrite_input()));
  }

  void plan_backward(Planner& planner) override {
    planner.give_gradient(0, plan_mask(planner, planner.output_gradient(), planner.may_overwrite_output_gradient()));
  }

 private:
  /// `from` times the mask; `in_place`: over `from`.
  static TensorId plan_mask(Planner& planner, TensorId from, bool in_place) {
    const models::Operator& op = planner.op();
    const Layout layout = planner.layout(from);
    const TensorId in = planner.in_layout(from, row_major(layout.dims(), dnnl::memory::data_type::f32));
    const TensorId out = in != from || in_place ? in : planner.new_tensor(planner.layout(in));
    const auto id = planner.random_stream();
    const std::size_t size = op.shape().elements();
    const std::size_t of_sample = size / planner.graph().batch();
    planner.host({in, out}, [in, out, id, rate = op.drop_rate, size, of_sample,
                             number = planner.number()](const StepContext& step) {
      const Dropout dropout(step.input.dropout_seed, id, rate);
      const std::span<const float> from(step.data(in), size);
      if (step.input.parts.empty()) {
        dropout.apply(step.input.first_sample, of_sample, from, {step.data(out), size});
      } else {
        dropout.apply(step.input.first_sample, step.input.parts[number], from, {step.data(out), size});
      }
    });
    return planner.in_layout(out, layout);
  }
};

}  // namespace

std::unique_ptr<Layer> make_dropout() { return std::make_unique<DropoutLayer>(); }

}  // namespace hcclsim::device::onednn
