#include "device/numerics/cross_entropy.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

/// Mean softmax cross-entropy. The gradient of the logits is computed in the forward pass already.
class Loss : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& shape = planner.input_shape();
    const Layout layout = matrix_layout(shape, dnnl::memory::data_type::f32);
    const TensorId logits = planner.in_layout(planner.input(), layout);
    gradient_ = planner.new_tensor(layout);
    const std::size_t elements = shape.elements();
    planner.host({logits, gradient_}, [logits, gradient = gradient_, elements](const StepContext& step) {
      const LossOfRows rows = cross_entropy({step.data(logits), elements}, step.batch->labels, 0, step.input.loss_scale,
                                            {step.data(gradient), elements});
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
