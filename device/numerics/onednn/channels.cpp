#include "device/numerics/loops/channels.hpp"

#include <algorithm>
#include <span>

#include "device/numerics/onednn/layer.hpp"
#include "device/numerics/onednn/parts.hpp"

/// Operators per channel whose loops are our own: a bias by itself, and a batch norm over the statistics of a group.
namespace hcclsim::device::onednn {
namespace {

constexpr std::size_t channel_axis = 1;

std::span<float> numbers_of(const StepContext& step, const PlainTensor& tensor) {
  return {step.data(tensor.id), tensor.elements()};
}

class Bias : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const PlainTensor in = as_plain(planner, planner.input());
    const PlainTensor out = new_plain_tensor(planner, in.sizes);
    planner.host({in.id, out.id}, [in, out, bias = planner.gradient_index(0)](const StepContext& step) {
      const AxisForm form = in.along(channel_axis);
      add_bias(form, numbers_of(step, in), {step.weight_of(bias), form.size}, numbers_of(step, out));
    });
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    planner.host({slopes.id}, [slopes, bias = planner.gradient_index(0)](const StepContext& step) {
      const AxisForm form = slopes.along(channel_axis);
      sum_channels(form, numbers_of(step, slopes), {step.gradient_of(bias), form.size});
    });
    planner.give_gradient(0, planner.output_gradient());
  }
};

class GroupBatchNorm : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    in_ = as_plain(planner, planner.input());
    planner.keep(in_.id);
    const GroupNorm norm = norm_of(planner);
    const std::size_t channels = norm.form.size;
    const auto vector = static_cast<dnnl_dim_t>(channels);
    means_ = new_plain_tensor(planner, {vector});
    scales_ = new_plain_tensor(planner, {vector});
    const PlainTensor out = new_plain_tensor(planner, in_.sizes);
    planner.host({in_.id}, [norm, in = in_, channels](const StepContext& step) {
      sum_moments(norm, numbers_of(step, in), {step.sent, 2 * channels});
    });
    planner.stop_for(false, 2 * channels, 2 * channels);
    planner.host({in_.id, means_.id, scales_.id, out.id}, [norm, in = in_, means = means_, scales = scales_, out,
                                                           channels, weight = planner.gradient_index(0),
                                                           shift = planner.gradient_index(1)](const StepContext& step) {
      moments_of(norm, {step.received, 2 * channels}, numbers_of(step, means), numbers_of(step, scales));
      normalise(norm, numbers_of(step, in), numbers_of(step, means), numbers_of(step, scales),
                {step.weight_of(weight), channels}, {step.weight_of(shift), channels}, numbers_of(step, out));
    });
    planner.keep(means_.id);
    planner.keep(scales_.id);
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    const GroupNorm norm = norm_of(planner);
    const std::size_t channels = norm.form.size;
    const std::uint32_t weight = planner.gradient_index(0);
    const std::uint32_t shift = planner.gradient_index(1);
    planner.host({in_.id, means_.id, scales_.id, slopes.id}, [norm, in = in_, means = means_, scales = scales_, slopes,
                                                              channels, weight, shift](const StepContext& step) {
      const std::span<float> of_weight(step.gradient_of(weight), channels);
      const std::span<float> of_shift(step.gradient_of(shift), channels);
      normalise_gradients(norm, numbers_of(step, in), numbers_of(step, means), numbers_of(step, scales),
                          numbers_of(step, slopes), of_weight, of_shift);
      std::ranges::copy(of_weight, step.sent);
      std::ranges::copy(of_shift, step.sent + channels);
    });
    if (!planner.input_needs_gradient()) return;
    planner.stop_for(true, 2 * channels, 2 * channels);
    const PlainTensor gradient = new_plain_tensor(planner, in_.sizes);
    planner.host({in_.id, means_.id, scales_.id, slopes.id, gradient.id}, [norm, in = in_, means = means_,
                                                                           scales = scales_, slopes, gradient, channels,
                                                                           weight](const StepContext& step) {
      normalise_input_gradient(norm, numbers_of(step, in), numbers_of(step, means), numbers_of(step, scales),
                               {step.weight_of(weight), channels}, numbers_of(step, slopes), {step.received, channels},
                               {step.received + channels, channels}, numbers_of(step, gradient));
    });
    planner.give_gradient(0, gradient.id);
  }

 private:
  [[nodiscard]] GroupNorm norm_of(const Planner& planner) const {
    return {in_.along(channel_axis), planner.op().group.ranks};
  }

  PlainTensor in_;
  PlainTensor means_;
  PlainTensor scales_;
};

}  // namespace

std::unique_ptr<Layer> make_bias() { return std::make_unique<Bias>(); }
std::unique_ptr<Layer> make_group_batch_norm() { return std::make_unique<GroupBatchNorm>(); }

}  // namespace hcclsim::device::onednn
