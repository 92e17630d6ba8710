#include "hccl/schedule/operation.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 10> collective_names{"allreduce", "reduce-scatter", "allgather", "broadcast",
                                                            "reduce",    "scatter",        "gather",    "alltoall",
                                                            "send-recv", "barrier"};

/// Prefix sums of every row of `width` counts, each with the sum of all at its end.
std::vector<std::uint64_t> prefix_sums(const std::vector<std::uint64_t>& counts, Rank width) {
  std::vector<std::uint64_t> sums;
  sums.reserve(counts.size() + counts.size() / std::max<Rank>(width, 1));
  for (std::size_t row = 0; row < counts.size(); row += width) {
    sums.push_back(0);
    for (Rank i = 0; i < width; ++i) sums.push_back(sums.back() + counts[row + i]);
  }
  return sums;
}

bool counts_blocks(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::allgather;
}

}  // namespace

std::string_view name_of(Buffer buffer) {
  static constexpr std::array<std::string_view, buffer_kinds> names{"input", "output", "scratch", "ccl"};
  return names[static_cast<std::size_t>(buffer)];
}

std::string_view name_of(Collective collective) { return collective_names[static_cast<std::size_t>(collective)]; }

Collective parse_collective(std::string_view name) {
  std::string accepted;
  for (std::size_t i = 0; i < collective_names.size(); ++i) {
    if (collective_names[i] == name) return static_cast<Collective>(i);
    accepted += accepted.empty() ? "" : ", ";
    accepted += collective_names[i];
  }
  bad_input("option", "unknown collective '{}'; accepted: {}", name, accepted);
}

BlockCounts BlockCounts::of_blocks(std::vector<std::uint64_t> counts) {
  BlockCounts made;
  made.width_ = static_cast<Rank>(counts.size());
  made.counts_ = std::move(counts);
  made.offsets_ = prefix_sums(made.counts_, made.width_);
  return made;
}

BlockCounts BlockCounts::of_pairs(Rank ranks, std::vector<std::uint64_t> counts) {
  if (counts.size() != std::size_t{ranks} * ranks) internal_error("{} counts for {} ranks", counts.size(), ranks);
  BlockCounts made;
  made.width_ = ranks;
  made.counts_ = std::move(counts);
  made.offsets_ = prefix_sums(made.counts_, ranks);
  std::vector<std::uint64_t> received(made.counts_.size());
  for (Rank sender = 0; sender < ranks; ++sender) {
    for (Rank receiver = 0; receiver < ranks; ++receiver) {
      received[std::size_t{receiver} * ranks + sender] = made.counts_[std::size_t{sender} * ranks + receiver];
    }
  }
  made.received_ = prefix_sums(received, ranks);
  return made;
}

std::uint64_t BlockCounts::largest() const { return *std::max_element(counts_.begin(), counts_.end()); }

Rank Operation::blocks() const {
  switch (collective) {
    case Collective::allreduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::barrier:
      return 1;
    case Collective::send_recv:
      return counts.empty() ? 1 : ranks;
    default:
      return ranks;
  }
}

bool Operation::holds_all(Buffer buffer) const {
  if (in_place) return true;
  const bool gathers = collective == Collective::allgather || collective == Collective::gather;
  const bool scatters = collective == Collective::reduce_scatter || collective == Collective::scatter;
  return !(buffer == Buffer::input && gathers) && !(buffer == Buffer::output && scatters);
}

Operation::Block Operation::block(Buffer buffer, Rank owner, Rank index) const {
  if (counts.empty()) return {index * elements, elements};
  if (!counts_pairs(collective)) {
    const bool all = holds_all(buffer);
    const Rank number = all ? index : owner;
    const std::uint64_t begin = counts.offset(0, number);
    return {all ? begin : 0, counts.offset(0, number + 1) - begin};
  }
  if (buffer == Buffer::output && !in_place) {
    const std::uint64_t begin = counts.received_offset(owner, index);
    return {begin, counts.received_offset(owner, index + 1) - begin};
  }
  const std::uint64_t begin = counts.offset(owner, index);
  return {begin, counts.offset(owner, index + 1) - begin};
}

std::uint64_t Operation::elements_of(Buffer buffer, Rank owner) const {
  const Block last = block(buffer, owner, blocks_in(buffer) - 1);
  return last.offset + last.elements;
}

Bytes Operation::size(Buffer buffer, Rank owner) const {
  if (collective == Collective::barrier || (in_place && buffer == Buffer::input)) return 0;
  if (!in_place && owner != root) {
    const bool from_root = collective == Collective::broadcast || collective == Collective::scatter;
    const bool to_root = collective == Collective::reduce || collective == Collective::gather;
    if ((buffer == Buffer::input && from_root) || (buffer == Buffer::output && to_root)) return 0;
  }
  return elements_of(buffer, owner) * size_of(type);
}

Bytes Operation::payload() const {
  if (collective == Collective::barrier) return 0;
  if (counts.empty()) return blocks() * elements * size_of(type);
  const Rank rows = counts_pairs(collective) ? ranks : 1;
  std::uint64_t most = 0;
  for (Rank row = 0; row < rows; ++row) most = std::max(most, counts.offset(row, ranks));
  return most * size_of(type);
}

void require_possible(const Operation& operation) {
  const std::string_view name = name_of(operation.collective);
  const std::size_t given = operation.counts.counts().size();
  if (operation.ranks == 0) bad_input("operation", "{}: at least one rank is needed", name);
  if (is_rooted(operation.collective) && operation.root >= operation.ranks) {
    bad_input("operation", "{}: root {}; ranks are 0 to {}", name, operation.root, operation.ranks - 1);
  }
  if (operation.collective == Collective::send_recv && operation.in_place) {
    bad_input("operation", "{}: works out of place only", name);
  }
  if (operation.counts.empty()) return;
  const bool pairs = counts_pairs(operation.collective);
  if (!pairs && !counts_blocks(operation.collective)) {
    bad_input("operation", "{}: all ranks have the same count; {} counts are given", name, given);
  }
  const std::size_t wanted = pairs ? std::size_t{operation.ranks} * operation.ranks : operation.ranks;
  if (given != wanted) bad_input("operation", "{}: {} counts are given, {} are needed", name, given, wanted);
  if (pairs && operation.in_place) bad_input("operation", "{}: different counts work out of place only", name);
}

Bytes alignment_of_blocks(const Operation& operation) {
  Bytes bits = operation.alignment;
  if (operation.counts.empty()) {
    if (operation.blocks() > 1) bits |= operation.elements * size_of(operation.type);
  } else {
    for (const std::uint64_t count : operation.counts.counts()) bits |= count * size_of(operation.type);
  }
  return bits & (~bits + 1);
}

}  // namespace hcclsim::hccl
