#include "hccl/training/numerics/replicas/row_exchange.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::hccl {

RowExchange::RowExchange(std::span<const std::span<const float>> sent, std::uint64_t features)
    : features_(features), block_(sent.front().size() / features / sent.size()), rows_(sent.size()) {
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    for (std::uint64_t row = 0; row < block_ * sent.size(); ++row) {
      const std::span<const float> numbers = sent[rank].subspan(row * features_, features_);
      if (std::ranges::any_of(numbers, [](float number) { return number != 0; })) rows_[rank].push_back(row);
    }
  }
}

BlockCounts RowExchange::counts() const {
  std::vector<std::uint64_t> counts(rows_.size() * rows_.size(), 0);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    for (const std::uint64_t row : rows_[rank]) counts[std::size_t{rank} * ranks() + receiver(row)] += features_;
  }
  return BlockCounts::of_pairs(ranks(), std::move(counts));
}

std::uint64_t RowExchange::received(Rank rank) const {
  std::uint64_t rows = 0;
  for (const std::vector<std::uint64_t>& of_sender : rows_) {
    rows += std::ranges::count_if(of_sender, [&](std::uint64_t row) { return receiver(row) == rank; });
  }
  return rows * features_;
}

void RowExchange::pack(Rank rank, std::span<const float> sent, std::span<float> packed) const {
  auto to = packed.begin();
  for (const std::uint64_t row : rows_[rank]) {
    to = std::ranges::copy(sent.subspan(row * features_, features_), to).out;
  }
}

void RowExchange::unpack(Rank rank, std::span<const float> packed, std::span<float> received) const {
  std::ranges::fill(received, 0.0F);
  for (Rank sender = 0; sender < ranks(); ++sender) {
    for (const std::uint64_t row : rows_[sender]) {
      if (receiver(row) != rank) continue;
      const std::uint64_t place = sender * block_ + row % block_;
      std::ranges::copy(packed.first(features_), received.subspan(place * features_).begin());
      packed = packed.subspan(features_);
    }
  }
}

}  // namespace hcclsim::hccl
