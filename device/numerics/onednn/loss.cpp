#include <algorithm>
#include <cmath>

#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

/// −ln softmax(logits)[label]; writes the derivative by the logits, times `scale`.
double cross_entropy(const float* logits, std::size_t classes, std::size_t label, double scale, float* gradient) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::size_t i = 0; i < classes; ++i) sum += std::exp(logits[i] - largest);
  for (std::size_t i = 0; i < classes; ++i) {
    const double probability = std::exp(logits[i] - largest) / sum;
    gradient[i] = static_cast<float>((probability - (i == label ? 1 : 0)) * scale);
  }
  return std::log(sum) + largest - logits[label];
}

/// Mean softmax cross-entropy. The gradient of the logits is already computed in the forward pass.
class Loss : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape shape = planner.input_shape();
    const Layout layout = matrix_layout(shape, dnnl::memory::data_type::f32);
    const TensorId logits = planner.in_layout(planner.input(), layout);
    gradient_ = planner.new_tensor(layout);
    planner.host({logits, gradient_}, [logits, gradient = gradient_, shape](const StepContext& step) {
      const std::size_t classes = shape.channels;
      const double scale = double{step.input.loss_scale} / shape.batch;
      double sum = 0;
      for (std::size_t row = 0; row < shape.batch; ++row) {
        const float* first = step.data(logits) + row * classes;
        const auto label = static_cast<std::size_t>(step.batch->labels[row]);
        sum += cross_entropy(first, classes, label, scale, step.data(gradient) + row * classes);
        if (std::max_element(first, first + classes) == first + label) ++step.output->correct;
      }
      step.output->loss = sum / shape.batch;
    });
  }

  void plan_backward(Planner& planner) override { planner.give_gradient(0, gradient_); }

 private:
  TensorId gradient_ = {};
};

}  // namespace

std::unique_ptr<Layer> make_loss() { return std::make_unique<Loss>(); }

}  // namespace hcclsim::device::onednn
