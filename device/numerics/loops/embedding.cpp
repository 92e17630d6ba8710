#include "device/numerics/loops/embedding.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::device {

void look_up(std::span<const float> table, const TableRows& rows, std::span<const std::int32_t> tokens,
             std::size_t features, std::span<float> out) {
  const std::size_t low = rows.alone ? rows.first : 0;
  const std::size_t high = rows.alone ? rows.first + rows.count : rows.all;
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    const auto token = static_cast<std::size_t>(tokens[r]);
    if (token < low || token >= high) {
      bad_input("tokens", "token {} at {}: tokens must be {} to {}{}", tokens[r], r, low, high - 1,
                rows.alone ? ", the rows of the part of the table that manual_split gives to its position" : "");
    }
    const std::span<float> row = out.subspan(r * features, features);
    if (token >= rows.first && token < rows.first + rows.count) {
      std::ranges::copy(table.subspan((token - rows.first) * features, features), row.begin());
    } else {
      std::ranges::fill(row, 0.0F);
    }
  }
}

void look_up_gradient(std::span<const float> slopes, const TableRows& rows, std::span<const std::int32_t> tokens,
                      std::size_t features, std::span<float> gradient, bool add) {
  if (!add) std::ranges::fill(gradient, 0.0F);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    const auto token = static_cast<std::size_t>(tokens[r]);
    if (token < rows.first || token >= rows.first + rows.count) continue;
    float* entry = &gradient[(token - rows.first) * features];
    const float* slope = &slopes[r * features];
    for (std::size_t i = 0; i < features; ++i) entry[i] += slope[i];
  }
}

void add_positions(const PositionTable& form, std::span<const float> table, std::span<const float> in,
                   std::span<float> out) {
  for (std::size_t r = 0; r < out.size() / form.features; ++r) {
    const float* entry = &table[form.row_of(r % form.sequence) * form.features];
    for (std::size_t i = 0; i < form.features; ++i) {
      const std::size_t at = r * form.features + i;
      out[at] = in.empty() ? entry[i] : in[at] + entry[i];
    }
  }
}

void add_positions_gradient(const PositionTable& form, std::span<const float> slopes, std::span<float> gradient) {
  std::ranges::fill(gradient, 0.0F);
  for (std::size_t r = 0; r < slopes.size() / form.features; ++r) {
    float* entry = &gradient[form.row_of(r % form.sequence) * form.features];
    for (std::size_t i = 0; i < form.features; ++i) entry[i] += slopes[r * form.features + i];
  }
}

}  // namespace hcclsim::device
