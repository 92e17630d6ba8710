#include "device/numerics/loops/embedding.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::device {

void look_up(std::span<const float> table, std::span<const std::int32_t> tokens, std::size_t features,
             std::span<float> out) {
  const std::size_t entries = table.size() / features;
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    const auto token = static_cast<std::size_t>(tokens[r]);
    if (token >= entries) bad_input("tokens", "token {} at {}: tokens must be 0 to {}", tokens[r], r, entries - 1);
    std::ranges::copy(table.subspan(token * features, features), out.begin() + r * features);
  }
}

void look_up_gradient(std::span<const float> slopes, std::span<const std::int32_t> tokens, std::size_t features,
                      std::span<float> gradient) {
  std::ranges::fill(gradient, 0.0F);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    float* entry = &gradient[static_cast<std::size_t>(tokens[r]) * features];
    const float* slope = &slopes[r * features];
    for (std::size_t i = 0; i < features; ++i) entry[i] += slope[i];
  }
}

void add_positions(std::span<const float> table, std::span<const float> in, std::span<float> out) {
  for (std::size_t first = 0; first < in.size(); first += table.size()) {
    for (std::size_t i = 0; i < table.size(); ++i) out[first + i] = in[first + i] + table[i];
  }
}

void add_positions_gradient(std::span<const float> slopes, std::span<float> gradient) {
  std::ranges::fill(gradient, 0.0F);
  for (std::size_t first = 0; first < slopes.size(); first += gradient.size()) {
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += slopes[first + i];
  }
}

}  // namespace hcclsim::device
