#include "device/numerics/loops/cross_entropy.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

/// Mean softmax cross-entropy in fp32, whatever the type of the logits. Their gradient is already computed in the
/// forward pass, unless the step has no backward pass.
class Loss : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& shape = planner.input_shape();
    const Layout layout = matrix_layout(shape, dnnl::memory::data_type::f32);
    const TensorId logits = planner.in_layout(planner.input(), layout);
    gradient_ = planner.new_tensor(layout);
    const std::size_t elements = shape.elements();
    planner.read_labels(shape.batch());
    const float smoothing = planner.options().label_smoothing;
    planner.host({logits, gradient_}, [=, gradient = gradient_](const StepContext& step) {
      const std::size_t slopes = step.gradients == nullptr ? 0 : elements;
      const LossOfRows rows = cross_entropy({step.data(logits), elements}, step.batch->labels, smoothing,
                                            step.input.loss_scale, {step.data(gradient), slopes});
      step.output->loss = rows.loss;
      step.output->correct = rows.correct;
    });
  }

  void plan_backward(Planner& planner) override { planner.give_gradient(0, gradient_); }

 private:
  TensorId gradient_ = {};
};

}  // namespace

std::unique_ptr<Layer> make_loss() { return std::make_unique<Loss>(); }

}  // namespace hcclsim::device::onednn
