#pragma once

#include <cstddef>
#include <functional>
#include <span>

/// Attention whose positions several ranks have in equal parts. The queries of a rank meet one block of keys and values
/// after the other, that of every rank. A block has the keys of all rows, then the values.
namespace hcclsim::device {

struct RingForm {
  std::size_t sequences = 1;
  std::size_t length = 1;  ///< positions of every sequence on a rank
  std::size_t ranks = 1;
  std::size_t heads = 1;
  std::size_t kv_heads = 1;
  std::size_t width = 1;  ///< features of a head
  bool causal = false;

  [[nodiscard]] std::size_t rows() const { return sequences * length; }
  /// Of keys, or of values.
  [[nodiscard]] std::size_t half() const { return rows() * kv_heads * width; }
  [[nodiscard]] std::size_t block() const { return 2 * half(); }
  /// One per row and head.
  [[nodiscard]] std::size_t statistics() const { return rows() * heads; }
};

/// Rows of heads side by side, in a matrix that may have more features.
template <typename Number>
struct RowsOfHeads {
  Number* first = nullptr;
  std::size_t row = 0;  ///< numbers from one row to the next

  [[nodiscard]] Number* at(std::size_t r, std::size_t head, std::size_t width) const {
    return first + r * row + head * width;
  }
};

/// Factor of a probability, for dropout; empty: 1. Positions are those of the whole sequence.
using ProbabilityFactor =
    std::function<float(std::size_t sequence, std::size_t head, std::size_t query, std::size_t key)>;

/// The attention of the queries of the rank at `place` to all blocks, of which the one that came in step s, of the rank
/// s before, is number s. Leaves the logarithms of the sums of the exponentials of the scores.
void ring_attention(const RingForm& form, std::size_t place, RowsOfHeads<const float> queries,
                    std::span<const float> blocks, const ProbabilityFactor& factor, std::span<float> out,
                    std::span<float> statistics);

/// Adds the gradients of the queries, and of the block of step `step`.
void ring_attention_gradient(const RingForm& form, std::size_t place, std::size_t step,
                             RowsOfHeads<const float> queries, std::span<const float> block,
                             const ProbabilityFactor& factor, std::span<const float> out,
                             std::span<const float> statistics, std::span<const float> slopes,
                             RowsOfHeads<float> query_gradient, std::span<float> block_gradient);

}  // namespace hcclsim::device
