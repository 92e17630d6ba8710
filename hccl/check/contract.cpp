#include "hccl/check/contract.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// Steps until one has become `ranks`, if the number grows at most by the factor `times` in each step.
std::uint32_t steps_to(Rank ranks, std::uint64_t times) {
  if (times < 2) return 0;
  std::uint32_t steps = 0;
  for (std::uint64_t known = 1; known < ranks; known *= times) ++steps;
  return steps;
}

Bytes ratio_up(Bytes bytes, Rank times, Rank ranks) { return (bytes * times + ranks - 1) / ranks; }

Rank nonempty_blocks(const Operation& operation) {
  if (operation.counts.empty()) return operation.ranks;
  const std::vector<std::uint64_t>& counts = operation.counts.counts();
  return static_cast<Rank>(std::count_if(counts.begin(), counts.end(), [](std::uint64_t count) { return count > 0; }));
}

}  // namespace

Bytes Contract::place_of(Rank block) const {
  return bytes(operation_.counts.empty() ? block * operation_.elements : operation_.counts.offset(0, block));
}

Holding Contract::block(Buffer buffer, Rank rank, Rank block) const {
  const Operation::Block found = operation_.block(buffer, rank, operation_.holds_all(buffer) ? block : 0);
  return {.buffer = buffer, .offset = bytes(found.offset), .length = bytes(found.elements)};
}

std::vector<Holding> Contract::initial(Rank rank) const {
  Holding held{.buffer = start(), .length = operation_.size(start(), rank), .only = rank};
  switch (operation_.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      if (rank != operation_.root) return {};
      break;
    case Collective::allgather:
    case Collective::gather:
      held = block(start(), rank, rank);
      held.place = place_of(rank);
      held.only = rank;
      break;
    default:
      break;
  }
  if (held.length == 0) return {};
  return {held};
}

std::vector<Holding> Contract::from_all(Rank rank, bool exchanged) const {
  std::vector<Holding> all;
  for (Rank source = 0; source < operation_.ranks; ++source) {
    Holding& held = all.emplace_back(block(Buffer::output, rank, source));
    held.place = exchanged ? block(start(), source, rank).offset : place_of(source);
    held.only = source;
  }
  return all;
}

std::vector<Holding> Contract::required(Rank rank) const {
  std::vector<Holding> all;
  const bool at_root = rank == operation_.root;
  const Bytes whole = operation_.size(Buffer::output, rank);
  switch (operation_.collective) {
    case Collective::allreduce:
      all = {{.length = whole}};
      break;
    case Collective::reduce:
      if (at_root) all = {{.length = whole}};
      break;
    case Collective::broadcast:
      all = {{.length = whole, .only = operation_.root}};
      break;
    case Collective::reduce_scatter:
    case Collective::scatter:
      all = {block(Buffer::output, rank, rank)};
      all.front().place = place_of(rank);
      if (operation_.collective == Collective::scatter) all.front().only = operation_.root;
      break;
    case Collective::allgather:
      all = from_all(rank, false);
      break;
    case Collective::gather:
      if (at_root) all = from_all(rank, false);
      break;
    case Collective::alltoall:
      all = from_all(rank, true);
      break;
    case Collective::send_recv:
      if (operation_.counts.empty()) {
        all = {{.length = whole, .only = (rank + operation_.ranks - 1) % operation_.ranks}};
      } else {
        all = from_all(rank, true);
      }
      break;
    case Collective::barrier:
      break;
  }
  std::erase_if(all, [](const Holding& holding) { return holding.length == 0; });
  return all;
}

bool Contract::all_end_alike() const {
  return operation_.collective == Collective::allreduce || operation_.collective == Collective::allgather ||
         operation_.collective == Collective::broadcast;
}

Bytes Contract::least_sent() const {
  const Bytes all = operation_.payload();
  const Rank ranks = operation_.ranks;
  if (ranks == 1) return 0;
  const BlockCounts& counts = operation_.counts;
  switch (operation_.collective) {
    case Collective::allreduce:
      // For every byte: before the first rank has the whole reduction, each other rank has sent its contribution; after
      // that, each of them still has to receive something. So every byte is sent 2(p−1) times in all, by p ranks.
      return ratio_up(all, 2 * (ranks - 1), ranks);
    case Collective::reduce_scatter: {
      // What a rank contributes to the blocks of others must leave it.
      std::uint64_t smallest = operation_.elements;
      if (!counts.empty()) smallest = *std::min_element(counts.counts().begin(), counts.counts().end());
      return all - bytes(smallest);
    }
    case Collective::allgather:
      // Every byte comes to p−1 ranks, and leaves its own at least once.
      return std::max(ratio_up(all, ranks - 1, ranks), bytes(operation_.largest_block()));
    case Collective::broadcast:  // It must leave the root.
    case Collective::reduce:     // Every contribution but the root's must leave its rank.
      return all;
    case Collective::scatter:  // All blocks but its own must leave the root.
      return all - bytes(operation_.elements);
    case Collective::gather:  // Its block must leave every rank but the root.
      return bytes(operation_.elements);
    case Collective::alltoall:
    case Collective::send_recv: {
      // What goes to others must leave its rank.
      if (counts.empty()) return operation_.blocks() == 1 ? all : all - bytes(operation_.elements);
      std::uint64_t most = 0;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const std::uint64_t kept = counts.offset(rank, rank + 1) - counts.offset(rank, rank);
        most = std::max(most, counts.offset(rank, ranks) - kept);
      }
      return bytes(most);
    }
    case Collective::barrier:
      break;
  }
  return 0;
}

Bytes Contract::least_reduced() const {
  // Every byte of the result takes p−1 reductions, by p ranks.
  return reduces(operation_.collective) ? ratio_up(operation_.payload(), operation_.ranks - 1, operation_.ranks) : 0;
}

Contract::Spread Contract::spread_of_pairs() const {
  const Rank ranks = operation_.ranks;
  const std::vector<std::uint64_t>& counts = operation_.counts.counts();
  std::vector<Spread> of_rank(ranks);
  for (Rank from = 0; from < ranks; ++from) {
    for (Rank to = 0; to < ranks; ++to) {
      if (from == to || counts[std::size_t{from} * ranks + to] == 0) continue;
      ++of_rank[from].receivers;
      ++of_rank[to].senders;
    }
  }
  Spread most;
  for (const Spread& one : of_rank) {
    most = {std::max(most.receivers, one.receivers), std::max(most.senders, one.senders)};
  }
  return most;
}

Contract::Spread Contract::spread() const {
  const Rank ranks = operation_.ranks;
  if (operation_.collective == Collective::barrier) return {ranks, ranks};
  if (operation_.payload() == 0) return {};
  switch (operation_.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      return {ranks, 1};
    case Collective::reduce:
    case Collective::gather:
      return {1, ranks};
    case Collective::reduce_scatter:
      return {nonempty_blocks(operation_), ranks};
    case Collective::allgather:
      return {ranks, nonempty_blocks(operation_)};
    case Collective::alltoall:
    case Collective::send_recv:
      if (!operation_.counts.empty()) return spread_of_pairs();
      if (operation_.blocks() == 1) return {std::min<Rank>(ranks, 2), std::min<Rank>(ranks, 2)};
      return {ranks, ranks};
    default:
      return {ranks, ranks};
  }
}

std::uint32_t Contract::least_steps(std::uint32_t out, std::uint32_t in) const {
  const Spread most = spread();
  return std::max(steps_to(most.receivers, std::uint64_t{out} + 1), steps_to(most.senders, std::uint64_t{in} + 1));
}

}  // namespace hcclsim::hccl
