#pragma once

#include <cstddef>
#include <span>

#include "device/numerics/loops/blocks.hpp"

/// Numbers per channel of row-major tensors, of which `AxisForm` names the channels' axis. Sums are in fp64, in the
/// order of the elements.
namespace hcclsim::device {

/// out = in + bias of the channel. `in` may be `out`.
void add_bias(const AxisForm& form, std::span<const float> in, std::span<const float> bias, std::span<float> out);
/// The gradient of add_bias' bias: the sums of the slopes of every channel.
void sum_channels(const AxisForm& form, std::span<const float> slopes, std::span<float> sums);

/// A batch norm whose samples and pixels several ranks have in equal parts. Between its steps sums are added up over
/// the ranks.
struct GroupNorm {
  AxisForm form{};        ///< of the rank's part
  std::size_t ranks = 1;  ///< parts

  /// Elements of a channel on all ranks.
  [[nodiscard]] double count() const {
    return static_cast<double>(form.outer) * static_cast<double>(form.inner) * static_cast<double>(ranks);
  }
};
/// Per channel the sum of the elements, and behind these the sums of their squares.
void sum_moments(const GroupNorm& norm, std::span<const float> in, std::span<float> sums);
/// Mean and 1 / √(variance + ε) per channel, the variance being that of all elements (biased).
void moments_of(const GroupNorm& norm, std::span<const float> sums, std::span<float> means, std::span<float> scales);
/// y = (x − mean) · scale · weight + shift.
void normalise(const GroupNorm& norm, std::span<const float> in, std::span<const float> means,
               std::span<const float> scales, std::span<const float> weight, std::span<const float> shift,
               std::span<float> out);
/// Gradients of weight and shift, of the rank's elements.
void normalise_gradients(const GroupNorm& norm, std::span<const float> in, std::span<const float> means,
                         std::span<const float> scales, std::span<const float> slopes, std::span<float> weight_gradient,
                         std::span<float> shift_gradient);
/// The gradient of the input, from these gradients summed up over the ranks.
void normalise_input_gradient(const GroupNorm& norm, std::span<const float> in, std::span<const float> means,
                              std::span<const float> scales, std::span<const float> weight,
                              std::span<const float> slopes, std::span<const float> weight_gradient,
                              std::span<const float> shift_gradient, std::span<float> gradient);

}  // namespace hcclsim::device
