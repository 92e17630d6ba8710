#pragma once

#include <cstddef>
#include <span>

#include "models/graph.hpp"

/// Functions of rows of features, and of sequences of rows, that oneDNN has no primitive for. Gradients of weights are
/// sums over the rows in their order; all of a gradient is written. `slopes` are the gradients of the output.
namespace hcclsim::device {

/// y = x · r · w per row, r = 1 / √(mean of x² + ε); keeps r of every row in `scales`.
void rms_norm(std::span<const float> in, std::span<const float> weight, std::span<float> scales, std::span<float> out);
void rms_norm_gradient(std::span<const float> in, std::span<const float> weight, std::span<const float> scales,
                       std::span<const float> slopes, std::span<float> in_gradient, std::span<float> weight_gradient);

/// f(x) · y, f an activation.
void gate_rows(models::Activation activation, std::span<const float> gate, std::span<const float> up,
               std::span<float> out);
void gate_rows_gradient(models::Activation activation, std::span<const float> gate, std::span<const float> up,
                        std::span<const float> slopes, std::span<float> gate_gradient, std::span<float> up_gradient);

/// Rows of sequences, every one of `heads` heads of `width` features.
struct HeadsInRows {
  std::size_t sequence = 1;  ///< rows
  std::size_t heads = 1;
  std::size_t width = 2;
  std::size_t turned = 2;  ///< of the width, the last ones; even
  std::size_t first = 0;   ///< position of the first row of every sequence
};
/// Turns features i and i + turned/2 of the turned ones of every head at position t by the angle direction · t ·
/// 10000^(−2i/turned) (Su et al., "RoFormer"). Its gradient is the turn in the other direction. `in` may be `out`.
void rotate_positions(const HeadsInRows& form, int direction, std::span<const float> in, std::span<float> out);

/// Puts row t of `shared`, of `shared_width` features, behind every head of row t of `in`, of `width` features.
void join_heads(std::span<const float> in, std::span<const float> shared, std::size_t heads, std::size_t width,
                std::size_t shared_width, std::span<float> out);
void join_heads_gradient(std::span<const float> slopes, std::size_t heads, std::size_t width, std::size_t shared_width,
                         std::span<float> in_gradient, std::span<float> shared_gradient);

/// Each head of `width` features `times` times, one after the other.
void repeat_heads(std::span<const float> in, std::size_t width, std::size_t times, std::span<float> out);
void repeat_heads_gradient(std::span<const float> slopes, std::size_t width, std::size_t times,
                           std::span<float> in_gradient);

/// Copies the first `rows` rows of every sequence of `sequence` rows; the gradient of the others is 0.
void select_rows(std::span<const float> in, std::size_t sequence, std::size_t rows, std::size_t features,
                 std::span<float> out);
void select_rows_gradient(std::span<const float> slopes, std::size_t sequence, std::size_t rows, std::size_t features,
                          std::span<float> in_gradient);

/// Images (channels × pixels each) to rows of channels, one per pixel, or back.
void pixels_to_rows(std::span<const float> images, std::size_t channels, std::size_t pixels, std::span<float> rows);
void rows_to_pixels(std::span<const float> rows, std::size_t channels, std::size_t pixels, std::span<float> images);

/// Puts a learned row in front of every sequence of `sequence` rows.
void put_in_front(std::span<const float> first, std::span<const float> in, std::size_t sequence, std::span<float> out);
void put_in_front_gradient(std::span<const float> slopes, std::size_t sequence, std::span<float> in_gradient,
                           std::span<float> first_gradient);

/// The sum of the rows of every sequence, plus a bias unless it is empty.
void sum_rows(std::span<const float> in, std::size_t sequence, std::span<const float> bias, std::size_t features,
              std::span<float> out);
void sum_rows_gradient(std::span<const float> slopes, std::size_t sequence, std::size_t features,
                       std::span<float> in_gradient, std::span<float> bias_gradient);

/// Half of (Σv)² − Σv² over the rows v of every sequence, summed over the features: one number per sequence.
void factorization(std::span<const float> in, std::size_t sequence, std::size_t features, std::span<float> out);
void factorization_gradient(std::span<const float> in, std::span<const float> slopes, std::size_t sequence,
                            std::size_t features, std::span<float> in_gradient);

}  // namespace hcclsim::device
