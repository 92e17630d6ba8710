#include <algorithm>
#include <span>
#include <vector>

#include "device/numerics/loops/cross_entropy.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

constexpr auto fp32_type = dnnl::memory::data_type::f32;

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
    const Layout layout = matrix_layout(shape, fp32_type);
    const TensorId logits = planner.in_layout(planner.input(input), layout);
    const TensorId gradient = planner.new_tensor(layout);
    gradients_.push_back(gradient);
    const models::Operator& op = planner.op();
    const models::LossPart part = op.loss_parts.empty() ? models::LossPart{} : op.loss_parts[input];
    const Rows rows{logits, gradient, shape.elements(), first_label, shape.batch(), planner.options().label_smoothing,
                    part};
    if (part.classes.ranks > 1) {
      plan_parts(planner, rows);
      return;
    }
    planner.host({logits, gradient}, [=, rule = rule_](const StepContext& step) {
      rows.add(step, rule(rows.values(step), rows.labels(step), rows.smoothing, rows.scale(step), rows.slopes(step)));
    });
  }

  /// One tensor of logits.
  struct Rows {
    TensorId logits;
    TensorId gradient;
    std::size_t elements;
    std::size_t first;
    std::size_t count;
    float smoothing;
    models::LossPart part;

    [[nodiscard]] std::span<const float> values(const StepContext& step) const { return {step.data(logits), elements}; }
    [[nodiscard]] std::span<const std::int32_t> labels(const StepContext& step) const {
      return std::span<const std::int32_t>(step.batch->labels).subspan(first, count);
    }
    [[nodiscard]] float scale(const StepContext& step) const {
      return static_cast<float>(step.input.loss_scale * part.gradient_factor);
    }
    [[nodiscard]] std::span<float> slopes(const StepContext& step) const {
      return {step.data(gradient), step.gradients == nullptr ? 0 : elements};
    }
    [[nodiscard]] ClassPart classes(const StepContext& step) const {
      return {step.place_in(part.classes), part.classes.ranks};
    }
    void add(const StepContext& step, const LossOfRows& loss) const {
      step.output->loss += loss.loss;
      step.output->correct += static_cast<double>(loss.correct) / part.copies;
    }
  };

  /// Maxima and sums of the rows are those over the group that has all classes.
  static void plan_parts(Planner& planner, const Rows& rows) {
    const TensorId maxima = planner.new_tensor(row_major({static_cast<dnnl_dim_t>(rows.count)}, fp32_type));
    planner.host({rows.logits}, [=](const StepContext& step) {
      row_maxima(rows.values(step), rows.count, {step.sent, rows.count});
    });
    planner.stop_for(false, rows.count, rows.count);
    planner.host({rows.logits, maxima}, [=](const StepContext& step) {
      const std::span<float> greatest(step.data(maxima), rows.count);
      std::copy_n(step.received, rows.count, greatest.begin());
      row_sums(rows.values(step), rows.classes(step), rows.labels(step), rows.smoothing, greatest,
               {step.sent, 2 * rows.count});
    });
    planner.stop_for(false, 2 * rows.count, 2 * rows.count);
    planner.host({rows.logits, rows.gradient, maxima}, [=](const StepContext& step) {
      rows.add(step, cross_entropy_of_part(rows.values(step), rows.classes(step), rows.labels(step), rows.smoothing,
                                           rows.scale(step), {step.data(maxima), rows.count},
                                           {step.received, 2 * rows.count}, rows.slopes(step)));
    });
  }

  LossRule rule_;
  std::vector<TensorId> gradients_;  // of the inputs
};

}  // namespace

std::unique_ptr<Layer> make_loss() { return std::make_unique<Loss>(cross_entropy); }
std::unique_ptr<Layer> make_binary_loss() { return std::make_unique<Loss>(sigmoid_cross_entropy); }

}  // namespace hcclsim::device::onednn
