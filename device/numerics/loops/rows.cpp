#include "device/numerics/loops/rows.hpp"

#include <algorithm>
#include <cmath>

namespace hcclsim::device {
namespace {

constexpr float rms_epsilon = 1e-5F;

/// A function and its slope at a point.
struct Activated {
  float value;
  float slope;
};

Activated silu(float x) {
  const float s = 1 / (1 + std::exp(-x));
  return {x * s, s * (1 + x * (1 - s))};
}

/// The form with tanh (Hendrycks and Gimpel 2016).
Activated gelu(float x) {
  constexpr float root = 0.7978845608F;  // √(2/π)
  constexpr float cubic = 0.044715F;
  const float t = std::tanh(root * (x + cubic * x * x * x));
  return {x / 2 * (1 + t), (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * cubic * x * x)};
}

Activated relu(float x) { return x > 0 ? Activated{x, 1} : Activated{0, 0}; }

Activated activate(models::Activation activation, float x) {
  switch (activation) {
    case models::Activation::gelu:
      return gelu(x);
    case models::Activation::relu:
      return relu(x);
    case models::Activation::silu:
      break;
  }
  return silu(x);
}

}  // namespace

void rms_norm(std::span<const float> in, std::span<const float> weight, std::span<float> scales, std::span<float> out) {
  const std::size_t features = weight.size();
  for (std::size_t r = 0; r < scales.size(); ++r) {
    const float* x = &in[r * features];
    float squares = 0;
    for (std::size_t i = 0; i < features; ++i) squares += x[i] * x[i];
    scales[r] = 1 / std::sqrt(squares / static_cast<float>(features) + rms_epsilon);
    for (std::size_t i = 0; i < features; ++i) out[r * features + i] = x[i] * scales[r] * weight[i];
  }
}

void rms_norm_gradient(std::span<const float> in, std::span<const float> weight, std::span<const float> scales,
                       std::span<const float> slopes, std::span<float> in_gradient, std::span<float> weight_gradient) {
  const std::size_t features = weight.size();
  std::ranges::fill(weight_gradient, 0.0F);
  for (std::size_t r = 0; r < scales.size(); ++r) {
    const float* x = &in[r * features];
    const float* dy = &slopes[r * features];
    float along = 0;  // how much the row's scale matters
    for (std::size_t i = 0; i < features; ++i) {
      along += dy[i] * weight[i] * x[i];
      weight_gradient[i] += dy[i] * x[i] * scales[r];
    }
    const float back = along * scales[r] * scales[r] / static_cast<float>(features);
    for (std::size_t i = 0; i < features; ++i) {
      in_gradient[r * features + i] = scales[r] * (dy[i] * weight[i] - x[i] * back);
    }
  }
}

void gate_rows(models::Activation activation, std::span<const float> gate, std::span<const float> up,
               std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = activate(activation, gate[i]).value * up[i];
}

void gate_rows_gradient(models::Activation activation, std::span<const float> gate, std::span<const float> up,
                        std::span<const float> slopes, std::span<float> gate_gradient, std::span<float> up_gradient) {
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const Activated activated = activate(activation, gate[i]);
    gate_gradient[i] = slopes[i] * up[i] * activated.slope;
    up_gradient[i] = slopes[i] * activated.value;
  }
}

void rotate_positions(const HeadsInRows& form, int direction, std::span<const float> in, std::span<float> out) {
  constexpr double base = 10000;
  const std::size_t half = form.turned / 2;
  const std::size_t still = form.width - form.turned;
  const std::size_t row = form.heads * form.width;
  if (still > 0) std::ranges::copy(in, out.begin());
  for (std::size_t r = 0; r < in.size() / row; ++r) {
    const auto position = static_cast<double>(form.first + r % form.sequence) * direction;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = position * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(form.turned));
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      for (std::size_t head = 0; head < form.heads; ++head) {
        const std::size_t one = r * row + head * form.width + still + i;
        const std::size_t other = one + half;
        const float x = in[one];
        const float y = in[other];
        out[one] = x * cosine - y * sine;
        out[other] = y * cosine + x * sine;
      }
    }
  }
}

void join_heads(std::span<const float> in, std::span<const float> shared, std::size_t heads, std::size_t width,
                std::size_t shared_width, std::span<float> out) {
  float* to = out.data();
  for (std::size_t head = 0; head < in.size() / width; ++head) {
    to = std::copy_n(&in[head * width], width, to);
    to = std::copy_n(&shared[head / heads * shared_width], shared_width, to);
  }
}

void join_heads_gradient(std::span<const float> slopes, std::size_t heads, std::size_t width, std::size_t shared_width,
                         std::span<float> in_gradient, std::span<float> shared_gradient) {
  const float* from = slopes.data();
  std::ranges::fill(shared_gradient, 0.0F);
  for (std::size_t head = 0; head < in_gradient.size() / width; ++head) {
    std::copy_n(from, width, &in_gradient[head * width]);
    from += width;
    for (std::size_t i = 0; i < shared_width; ++i) shared_gradient[head / heads * shared_width + i] += *from++;
  }
}

void repeat_heads(std::span<const float> in, std::size_t width, std::size_t times, std::span<float> out) {
  float* to = out.data();
  for (std::size_t head = 0; head < in.size() / width; ++head) {
    for (std::size_t i = 0; i < times; ++i) to = std::copy_n(&in[head * width], width, to);
  }
}

void repeat_heads_gradient(std::span<const float> slopes, std::size_t width, std::size_t times,
                           std::span<float> in_gradient) {
  const float* from = slopes.data();
  std::ranges::fill(in_gradient, 0.0F);
  for (std::size_t head = 0; head < in_gradient.size() / width; ++head) {
    for (std::size_t i = 0; i < times * width; ++i) in_gradient[head * width + i % width] += *from++;
  }
}

void select_rows(std::span<const float> in, std::size_t sequence, std::size_t rows, std::size_t features,
                 std::span<float> out) {
  for (std::size_t s = 0; s * sequence * features < in.size(); ++s) {
    std::ranges::copy(in.subspan(s * sequence * features, rows * features), &out[s * rows * features]);
  }
}

void select_rows_gradient(std::span<const float> slopes, std::size_t sequence, std::size_t rows, std::size_t features,
                          std::span<float> in_gradient) {
  std::ranges::fill(in_gradient, 0.0F);
  for (std::size_t s = 0; s * rows * features < slopes.size(); ++s) {
    std::ranges::copy(slopes.subspan(s * rows * features, rows * features), &in_gradient[s * sequence * features]);
  }
}

void pixels_to_rows(std::span<const float> images, std::size_t channels, std::size_t pixels, std::span<float> rows) {
  for (std::size_t image = 0; image < images.size(); image += channels * pixels) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < pixels; ++p) rows[image + p * channels + c] = images[image + c * pixels + p];
    }
  }
}

void rows_to_pixels(std::span<const float> rows, std::size_t channels, std::size_t pixels, std::span<float> images) {
  pixels_to_rows(rows, pixels, channels, images);
}

void put_in_front(std::span<const float> first, std::span<const float> in, std::size_t sequence, std::span<float> out) {
  const std::size_t before = sequence * first.size();
  const std::size_t after = before + first.size();
  for (std::size_t s = 0; s * before < in.size(); ++s) {
    std::ranges::copy(first, &out[s * after]);
    std::ranges::copy(in.subspan(s * before, before), &out[s * after + first.size()]);
  }
}

void put_in_front_gradient(std::span<const float> slopes, std::size_t sequence, std::span<float> in_gradient,
                           std::span<float> first_gradient) {
  const std::size_t features = first_gradient.size();
  const std::size_t before = sequence * features;
  const std::size_t after = before + features;
  std::ranges::fill(first_gradient, 0.0F);
  for (std::size_t s = 0; s * before < in_gradient.size(); ++s) {
    for (std::size_t i = 0; i < features; ++i) first_gradient[i] += slopes[s * after + i];
    std::ranges::copy(slopes.subspan(s * after + features, before), &in_gradient[s * before]);
  }
}

void sum_rows(std::span<const float> in, std::size_t sequence, std::span<const float> bias, std::size_t features,
              std::span<float> out) {
  for (std::size_t s = 0; s * features < out.size(); ++s) {
    for (std::size_t i = 0; i < features; ++i) {
      float sum = bias.empty() ? 0 : bias[i];
      for (std::size_t r = 0; r < sequence; ++r) sum += in[(s * sequence + r) * features + i];
      out[s * features + i] = sum;
    }
  }
}

void sum_rows_gradient(std::span<const float> slopes, std::size_t sequence, std::size_t features,
                       std::span<float> in_gradient, std::span<float> bias_gradient) {
  std::ranges::fill(bias_gradient, 0.0F);
  for (std::size_t s = 0; s * features < slopes.size(); ++s) {
    const auto slope = slopes.subspan(s * features, features);
    for (std::size_t i = 0; i < bias_gradient.size(); ++i) bias_gradient[i] += slope[i];
    for (std::size_t r = 0; r < sequence; ++r) std::ranges::copy(slope, &in_gradient[(s * sequence + r) * features]);
  }
}

void factorization(std::span<const float> in, std::size_t sequence, std::size_t features, std::span<float> out) {
  for (std::size_t s = 0; s < out.size(); ++s) {
    float result = 0;
    for (std::size_t i = 0; i < features; ++i) {
      float sum = 0;
      float squares = 0;
      for (std::size_t r = 0; r < sequence; ++r) {
        const float v = in[(s * sequence + r) * features + i];
        sum += v;
        squares += v * v;
      }
      result += sum * sum - squares;
    }
    out[s] = result / 2;
  }
}

void factorization_gradient(std::span<const float> in, std::span<const float> slopes, std::size_t sequence,
                            std::size_t features, std::span<float> in_gradient) {
  for (std::size_t s = 0; s < slopes.size(); ++s) {
    for (std::size_t i = 0; i < features; ++i) {
      float sum = 0;
      for (std::size_t r = 0; r < sequence; ++r) sum += in[(s * sequence + r) * features + i];
      for (std::size_t r = 0; r < sequence; ++r) {
        const std::size_t at = (s * sequence + r) * features + i;
        in_gradient[at] = slopes[s] * (sum - in[at]);
      }
    }
  }
}

}  // namespace hcclsim::device
