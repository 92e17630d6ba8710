#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "hccl/compression/settings.hpp"

/// How a hook sees a bucket, a run of gradients that one allreduce would carry: which parts of it are matrices of low
/// rank and which are sent as they are. Sizes only; that of P and Q is what is sent.
namespace hcclsim::hccl {

/// The gradient of a parameter, in the order of the bucket. As a matrix it has its first dimension as rows and all
/// others as columns; a vector has one column.
struct BucketTensor {
  std::uint64_t elements = 0;
  std::uint64_t rows = 0;  ///< elements: a vector, or a shape that is not known

  [[nodiscard]] std::uint64_t columns() const { return elements / rows; }
};

/// A part of a bucket, row-major, that is approximated by P·Qᵀ: P has rows × rank elements, Q columns × rank.
struct LowRankMatrix {
  std::uint64_t offset = 0;  ///< of its first element in the bucket
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t rank = 0;
  std::uint64_t p_offset = 0;  ///< in the P of the bucket
  std::uint64_t q_offset = 0;

  [[nodiscard]] std::uint64_t elements() const { return rows * columns; }
  [[nodiscard]] std::uint64_t p_elements() const { return rows * rank; }
  [[nodiscard]] std::uint64_t q_elements() const { return columns * rank; }
  [[nodiscard]] bool same_shape(const LowRankMatrix& other) const {
    return rows == other.rows && columns == other.columns;
  }
};

struct ElementRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct Bucket {
  std::uint64_t elements = 0;
  /// With those that fill it up to a square, for the batched hook; zero in every step before the error is added.
  std::uint64_t padded = 0;
  std::vector<LowRankMatrix> matrices{};  ///< those of one shape follow each other
  std::vector<ElementRange> direct{};     ///< what powersgd sends as it is
  std::uint64_t direct_elements = 0;
  std::uint64_t p_elements = 0;
  std::uint64_t q_elements = 0;
  std::uint64_t selected = 0;  ///< topk: elements that each rank sends

  /// Elements that a step sends, as compression_stats() counts them: P11.2. With topk a place counts as an element.
  [[nodiscard]] std::uint64_t sent() const;
};

/// P11.7, P11.10 and P11.12 for batched_powersgd, P11.13 for powersgd: a matrix is compressed if
/// (rows + columns)·rank·min_compression_rate < rows·columns; its rank is at most its shorter side. A vector of n
/// is n × 1, which is compressed with rates below n / (n + 1) alone.
[[nodiscard]] Bucket make_bucket(const CompressionSettings& settings, std::span<const BucketTensor> tensors);

/// The least s with s² ≥ n.
[[nodiscard]] std::uint64_t square_side(std::uint64_t n);

}  // namespace hcclsim::hccl
