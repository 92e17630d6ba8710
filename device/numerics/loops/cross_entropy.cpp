#include "device/numerics/loops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

/// Sums of one row that loss and gradient need. Exponentials are of logits less the largest, so none overflows.
struct Row {
  std::size_t largest = 0;
  float top = 0;
  double exponentials = 0;
  double logits = 0;  // less the largest; differences of fp32 could overflow
};

Row sum_row(std::span<const float> logits) {
  Row row;
  row.largest = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  row.top = logits[row.largest];
  for (const float logit : logits) {
    row.exponentials += std::exp(logit - row.top);
    row.logits += static_cast<double>(logit) - row.top;
  }
  return row;
}

}  // namespace

LossOfRows cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                         float loss_scale, std::span<float> slopes) {
  const std::size_t rows = labels.size();
  const std::size_t classes = logits.size() / rows;
  const double smooth_target = static_cast<double>(smoothing) / static_cast<double>(classes);
  const double label_target = 1 - static_cast<double>(smoothing);
  const double slope_scale = static_cast<double>(loss_scale) / static_cast<double>(rows);
  LossOfRows result;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto label = static_cast<std::size_t>(labels[r]);
    if (label >= classes) bad_input("labels", "label {} of row {}: labels must be 0 to {}", labels[r], r, classes - 1);
    const std::span<const float> values = logits.subspan(r * classes, classes);
    const Row row = sum_row(values);
    result.loss += std::log(row.exponentials) - label_target * (static_cast<double>(values[label]) - row.top);
    if (smoothing > 0) result.loss -= smooth_target * row.logits;  // else 0 · ∞ where a logit is −∞
    if (row.largest == label) ++result.correct;
    if (slopes.empty()) continue;
    const std::span<float> row_slopes = slopes.subspan(r * classes, classes);
    const double factor = slope_scale / row.exponentials;
    for (std::size_t c = 0; c < classes; ++c) {
      const double target = smooth_target + (c == label ? label_target : 0);
      row_slopes[c] = static_cast<float>(std::exp(values[c] - row.top) * factor - target * slope_scale);
    }
  }
  result.loss /= static_cast<double>(rows);
  return result;
}

void row_maxima(std::span<const float> logits, std::size_t rows, std::span<float> maxima) {
  const std::size_t classes = logits.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) maxima[r] = std::ranges::max(logits.subspan(r * classes, classes));
}

void row_sums(std::span<const float> logits, ClassPart part, std::span<const std::int32_t> labels, float smoothing,
              std::span<const float> maxima, std::span<float> sums) {
  const std::size_t rows = labels.size();
  const std::size_t classes = logits.size() / rows;
  const std::size_t all = classes * part.parts;
  const double smooth_target = static_cast<double>(smoothing) / static_cast<double>(all);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto label = static_cast<std::size_t>(labels[r]);
    if (label >= all) bad_input("labels", "label {} of row {}: labels must be 0 to {}", labels[r], r, all - 1);
    double exponentials = 0;
    double targets = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const float less = logits[r * classes + c] - maxima[r];
      exponentials += std::exp(less);
      if (smoothing > 0) targets += smooth_target * less;  // else 0 · ∞ where a logit is −∞
      if (part.number * classes + c == label) targets += (1 - static_cast<double>(smoothing)) * less;
    }
    sums[r] = static_cast<float>(exponentials);
    sums[rows + r] = static_cast<float>(targets);
  }
}

LossOfRows cross_entropy_of_part(std::span<const float> logits, ClassPart part, std::span<const std::int32_t> labels,
                                 float smoothing, float loss_scale, std::span<const float> maxima,
                                 std::span<const float> sums, std::span<float> slopes) {
  const std::size_t rows = labels.size();
  const std::size_t classes = logits.size() / rows;
  const double smooth_target = static_cast<double>(smoothing) / static_cast<double>(classes * part.parts);
  const double slope_scale = static_cast<double>(loss_scale) / static_cast<double>(rows);
  LossOfRows result;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> values = logits.subspan(r * classes, classes);
    const auto label = static_cast<std::size_t>(labels[r]);
    const bool own = label / classes == part.number;
    result.loss += std::log(static_cast<double>(sums[r])) - sums[rows + r];
    if (own && values[label % classes] == maxima[r]) result.correct += static_cast<std::uint32_t>(part.parts);
    if (slopes.empty()) continue;
    const double factor = slope_scale / sums[r];
    for (std::size_t c = 0; c < classes; ++c) {
      const double target = smooth_target + (own && c == label % classes ? 1 - static_cast<double>(smoothing) : 0);
      slopes[r * classes + c] = static_cast<float>(std::exp(values[c] - maxima[r]) * factor - target * slope_scale);
    }
  }
  result.loss /= static_cast<double>(rows);
  return result;
}

LossOfRows sigmoid_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                                 float loss_scale, std::span<float> slopes) {
  const auto rows = static_cast<double>(labels.size());
  LossOfRows result;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] != 0 && labels[r] != 1)
      bad_input("labels", "label {} of row {}: labels must be 0 or 1", labels[r], r);
    const double logit = logits[r];
    const double target = labels[r] * (1 - static_cast<double>(smoothing)) + smoothing / 2;
    const double exponential = std::exp(-std::abs(logit));  // at most 1
    result.loss += std::max(logit, 0.0) - target * logit + std::log1p(exponential);
    if ((logit > 0) == (labels[r] == 1)) ++result.correct;
    if (slopes.empty()) continue;
    const double probability = (logit > 0 ? 1 : exponential) / (1 + exponential);
    slopes[r] = static_cast<float>((probability - target) * loss_scale / rows);
  }
  result.loss /= rows;
  return result;
}

}  // namespace hcclsim::device
