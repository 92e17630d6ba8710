#include <span>
#include <vector>

#include "device/numerics/loops/cross_entropy.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

using LossRule = LossOfRows (*)(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                                float loss_scale, std::span<float> slopes);

/// The sum of the mean losses of one or several tensors of logits, in fp32, whatever their type. The gradients are
/// already computed in the forward pass, unless the step has no backward pass. The batch has the labels of one tensor
/// behind those of another.
class Loss : public Layer {
 public:
  explicit Loss(LossRule rule) : rule_(rule) {}

  void plan_forward(Planner& planner) override {
    std::size_t first_label = 0;
    for (std::size_t input = 0; input < planner.op().inputs.size(); ++input) {
      plan_loss(planner, input, first_label);
      first_label += planner.input_shape(input).batch();
    }
    planner.read_labels(first_label);
  }

  void plan_backward(Planner& planner) override {
    for (std::size_t input = 0; input < gradients_.size(); ++input) planner.give_gradient(input, gradients_[input]);
  }

 private:
  void plan_loss(Planner& planner, std::size_t input, std::size_t first_label) {
    const models::Shape& shape = planner.input_shape(input);
    const Layout layout = matrix_layout(shape, dnnl::memory::data_type::f32);
    const TensorId logits = planner.in_layout(planner.input(input), layout);
    const TensorId gradient = planner.new_tensor(layout);
    gradients_.push_back(gradient);
    const std::size_t elements = shape.elements();
    const std::size_t rows = shape.batch();
    const float smoothing = planner.options().label_smoothing;
    planner.host({logits, gradient}, [=, rule = rule_](const StepContext& step) {
      const std::size_t slopes = step.gradients == nullptr ? 0 : elements;
      const auto labels = std::span<const std::int32_t>(step.batch->labels).subspan(first_label, rows);
      const LossOfRows loss =
          rule({step.data(logits), elements}, labels, smoothing, step.input.loss_scale, {step.data(gradient), slopes});
      step.output->loss += loss.loss;
      step.output->correct += loss.correct;
    });
  }

  LossRule rule_;
  std::vector<TensorId> gradients_;  // of the inputs
};

}  // namespace

std::unique_ptr<Layer> make_loss() { return std::make_unique<Loss>(cross_entropy); }
std::unique_ptr<Layer> make_binary_loss() { return std::make_unique<Loss>(sigmoid_cross_entropy); }

}  // namespace hcclsim::device::onednn
