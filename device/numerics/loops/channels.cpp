#include "device/numerics/loops/channels.hpp"

#include <cmath>
#include <vector>

namespace hcclsim::device {
namespace {

constexpr double group_norm_epsilon = 1e-5;

/// Calls `use` with the channel and the number of every element.
template <typename Use>
void for_each_element(const AxisForm& form, const Use& use) {
  std::size_t element = 0;
  for (std::size_t outer = 0; outer < form.outer; ++outer) {
    for (std::size_t channel = 0; channel < form.size; ++channel) {
      for (std::size_t inner = 0; inner < form.inner; ++inner, ++element) use(channel, element);
    }
  }
}

}  // namespace

void add_bias(const AxisForm& form, std::span<const float> in, std::span<const float> bias, std::span<float> out) {
  for_each_element(form, [&](std::size_t channel, std::size_t i) { out[i] = in[i] + bias[channel]; });
}

void sum_channels(const AxisForm& form, std::span<const float> slopes, std::span<float> sums) {
  std::vector<double> exact(form.size, 0);
  for_each_element(form, [&](std::size_t channel, std::size_t i) { exact[channel] += slopes[i]; });
  for (std::size_t channel = 0; channel < form.size; ++channel) sums[channel] = static_cast<float>(exact[channel]);
}

void sum_moments(const GroupNorm& norm, std::span<const float> in, std::span<float> sums) {
  const std::size_t channels = norm.form.size;
  std::vector<double> exact(2 * channels, 0);
  for_each_element(norm.form, [&](std::size_t channel, std::size_t i) {
    const double value = in[i];
    exact[channel] += value;
    exact[channels + channel] += value * value;
  });
  for (std::size_t i = 0; i < exact.size(); ++i) sums[i] = static_cast<float>(exact[i]);
}

void moments_of(const GroupNorm& norm, std::span<const float> sums, std::span<float> means, std::span<float> scales) {
  const std::size_t channels = norm.form.size;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double mean = sums[channel] / norm.count();
    const double variance = std::fmax(sums[channels + channel] / norm.count() - mean * mean, 0);
    means[channel] = static_cast<float>(mean);
    scales[channel] = static_cast<float>(1 / std::sqrt(variance + group_norm_epsilon));
  }
}

void normalise(const GroupNorm& norm, std::span<const float> in, std::span<const float> means,
               std::span<const float> scales, std::span<const float> weight, std::span<const float> shift,
               std::span<float> out) {
  for_each_element(
      norm.form, [&](std::size_t c, std::size_t i) { out[i] = (in[i] - means[c]) * scales[c] * weight[c] + shift[c]; });
}

void normalise_gradients(const GroupNorm& norm, std::span<const float> in, std::span<const float> means,
                         std::span<const float> scales, std::span<const float> slopes, std::span<float> weight_gradient,
                         std::span<float> shift_gradient) {
  std::vector<double> of_weight(norm.form.size, 0);
  std::vector<double> of_shift(norm.form.size, 0);
  for_each_element(norm.form, [&](std::size_t c, std::size_t i) {
    of_weight[c] += static_cast<double>(slopes[i]) * ((in[i] - means[c]) * scales[c]);
    of_shift[c] += slopes[i];
  });
  for (std::size_t c = 0; c < norm.form.size; ++c) {
    weight_gradient[c] = static_cast<float>(of_weight[c]);
    shift_gradient[c] = static_cast<float>(of_shift[c]);
  }
}

void normalise_input_gradient(const GroupNorm& norm, std::span<const float> in, std::span<const float> means,
                              std::span<const float> scales, std::span<const float> weight,
                              std::span<const float> slopes, std::span<const float> weight_gradient,
                              std::span<const float> shift_gradient, std::span<float> gradient) {
  const auto share = static_cast<float>(1 / norm.count());
  for_each_element(norm.form, [&](std::size_t c, std::size_t i) {
    const float normal = (in[i] - means[c]) * scales[c];
    gradient[i] = weight[c] * scales[c] * (slopes[i] - share * (shift_gradient[c] + normal * weight_gradient[c]));
  });
}

}  // namespace hcclsim::device
