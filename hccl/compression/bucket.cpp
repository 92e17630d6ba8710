#include "hccl/compression/bucket.hpp"

#include <algorithm>
#include <cmath>

namespace hcclsim::hccl {
namespace {

/// Gives each matrix its places in P and Q.
void place_factors(Bucket& bucket) {
  for (LowRankMatrix& matrix : bucket.matrices) {
    matrix.p_offset = bucket.p_elements;
    matrix.q_offset = bucket.q_elements;
    bucket.p_elements += matrix.p_elements();
    bucket.q_elements += matrix.q_elements();
  }
}

bool saves(const LowRankMatrix& matrix, double rate) {
  const auto factors = static_cast<double>((matrix.rows + matrix.columns) * matrix.rank);
  return factors * rate < static_cast<double>(matrix.elements());
}

/// Those of one shape together, in the order in which shapes come first: so does PyTorch, batched or not.
void group_by_shape(std::vector<LowRankMatrix>& matrices) {
  std::vector<LowRankMatrix> grouped;
  for (const LowRankMatrix& matrix : matrices) {
    const auto last = std::find_if(grouped.rbegin(), grouped.rend(),
                                   [&](const LowRankMatrix& other) { return other.same_shape(matrix); });
    grouped.insert(last == grouped.rend() ? grouped.end() : last.base(), matrix);
  }
  matrices = std::move(grouped);
}

void cut_into_matrices(Bucket& bucket, const CompressionSettings& settings, std::span<const BucketTensor> tensors) {
  std::uint64_t offset = 0;
  for (const BucketTensor& tensor : tensors) {
    const LowRankMatrix matrix{.offset = offset,
                               .rows = tensor.rows,
                               .columns = tensor.columns(),
                               .rank = std::min({tensor.rows, tensor.columns(), std::uint64_t{settings.rank}})};
    if (saves(matrix, settings.min_compression_rate)) {
      bucket.matrices.push_back(matrix);
    } else {
      bucket.direct.push_back({offset, tensor.elements});
      bucket.direct_elements += tensor.elements;
    }
    offset += tensor.elements;
  }
  group_by_shape(bucket.matrices);
}

}  // namespace

std::uint64_t square_side(std::uint64_t n) {
  auto side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (side * side < n) ++side;
  while (side > 0 && (side - 1) * (side - 1) >= n) --side;
  return side;
}

std::uint64_t Bucket::sent() const {
  if (selected > 0) return 2 * selected;
  return matrices.empty() && direct.empty() ? elements : direct_elements + p_elements + q_elements;
}

Bucket make_bucket(const CompressionSettings& settings, std::span<const BucketTensor> tensors) {
  Bucket bucket;
  for (const BucketTensor& tensor : tensors) bucket.elements += tensor.elements;
  bucket.padded = bucket.elements;
  if (settings.kind == CompressionKind::batched_powersgd) {
    const std::uint64_t side = square_side(bucket.elements);
    bucket.padded = side * side;
    bucket.matrices.push_back({.rows = side, .columns = side, .rank = std::min(side, std::uint64_t{settings.rank})});
  } else if (settings.kind == CompressionKind::powersgd) {
    cut_into_matrices(bucket, settings, tensors);
  } else if (settings.kind == CompressionKind::topk) {
    const double part = std::ceil(settings.ratio * static_cast<double>(bucket.elements));
    bucket.selected = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(part), 1, bucket.elements);
  }
  place_factors(bucket);
  return bucket;
}

}  // namespace hcclsim::hccl
