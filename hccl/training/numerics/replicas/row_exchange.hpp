#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// Rows on their way to experts that drop none, or back. An expert has a place for every row, since real gates may send
/// any rows anywhere; places that nobody takes are rows of zeros. Between ranks go the rows that there are, in an
/// alltoall of uneven parts, as in a framework that has told the ranks these numbers before.
namespace hcclsim::hccl {

class RowExchange {
 public:
  /// `sent`: what each rank of the group has laid out, a block of as many rows of `features` numbers for every rank.
  RowExchange(std::span<const std::span<const float>> sent, std::uint64_t features);

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(rows_.size()); }
  /// Elements from each rank to each other.
  [[nodiscard]] BlockCounts counts() const;
  /// Elements that a rank sends to all, and that it gets from all.
  [[nodiscard]] std::uint64_t sent(Rank rank) const { return rows_[rank].size() * features_; }
  [[nodiscard]] std::uint64_t received(Rank rank) const;

  /// The rows of a rank that are no zeros, one behind the other.
  void pack(Rank rank, std::span<const float> sent, std::span<float> packed) const;
  /// Puts what has come to a rank, sender by sender, to its places; all others are zeros.
  void unpack(Rank rank, std::span<const float> packed, std::span<float> received) const;

 private:
  [[nodiscard]] Rank receiver(std::uint64_t row) const { return static_cast<Rank>(row / block_); }

  std::uint64_t features_;
  std::uint64_t block_;                           // rows of a block
  std::vector<std::vector<std::uint64_t>> rows_;  // of each rank, those that are no zeros, ascending
};

}  // namespace hcclsim::hccl
