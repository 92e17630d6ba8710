#include "hccl/verify/expected_result.hpp"

#include <numeric>
#include <utility>

namespace hcclsim::hccl {
namespace {

Buffer start_of(const Operation& operation) { return operation.in_place ? Buffer::output : Buffer::input; }

/// Block `index` in a buffer that holds all blocks, or the own one.
Operation::Block block_of(const Operation& operation, Buffer buffer, Rank owner, Rank index) {
  return operation.block(buffer, owner, operation.holds_all(buffer) ? index : 0);
}

/// Builds the pieces of all collectives from four cases: who contributes to a block, and who gets it.
class Pieces {
 public:
  explicit Pieces(const Operation& operation) : operation_(operation) {
    switch (operation.collective) {
      case Collective::allreduce:
        add(0, all(), all());
        break;
      case Collective::reduce:
        add(0, all(), root());
        break;
      case Collective::broadcast:
        add(0, root(), all());
        break;
      case Collective::reduce_scatter:
        for (Rank rank = 0; rank < operation.ranks; ++rank) add(rank, all(), {rank});
        break;
      case Collective::scatter:
        for (Rank rank = 0; rank < operation.ranks; ++rank) add(rank, root(), {rank});
        break;
      case Collective::allgather:
        for (Rank rank = 0; rank < operation.ranks; ++rank) add(rank, {rank}, all());
        break;
      case Collective::gather:
        for (Rank rank = 0; rank < operation.ranks; ++rank) add(rank, {rank}, root());
        break;
      case Collective::alltoall:
        add_pairs();
        break;
      case Collective::send_recv:
        if (!operation.counts.empty()) add_pairs();
        for (Rank from = 0; operation.counts.empty() && from < operation.ranks; ++from) {
          list_.push_back({operation.elements, {{from, 0}}, {{(from + 1) % operation.ranks, 0}}});
        }
        break;
      case Collective::barrier:
        break;
    }
    std::erase_if(list_, [](const ResultPiece& piece) { return piece.elements == 0; });
  }

  [[nodiscard]] std::vector<ResultPiece> list() && { return std::move(list_); }

 private:
  [[nodiscard]] std::vector<Rank> all() const {
    std::vector<Rank> ranks(operation_.ranks);
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    return ranks;
  }
  [[nodiscard]] std::vector<Rank> root() const { return {operation_.root}; }

  /// Block `index` goes from these ranks to those, to the same block.
  void add(Rank index, const std::vector<Rank>& from, const std::vector<Rank>& to) {
    ResultPiece piece;
    for (const Rank rank : from) {
      const Operation::Block block = block_of(operation_, start_of(operation_), rank, index);
      piece.elements = block.elements;
      piece.sources.push_back({rank, block.offset});
    }
    for (const Rank rank : to) {
      piece.holders.push_back({rank, block_of(operation_, Buffer::output, rank, index).offset});
    }
    list_.push_back(std::move(piece));
  }

  /// Block d of rank s becomes block s of rank d.
  void add_pairs() {
    for (Rank from = 0; from < operation_.ranks; ++from) {
      for (Rank to = 0; to < operation_.ranks; ++to) {
        const Operation::Block sent = operation_.block(start_of(operation_), from, to);
        list_.push_back(
            {sent.elements, {{from, sent.offset}}, {{to, operation_.block(Buffer::output, to, from).offset}}});
      }
    }
  }

  const Operation& operation_;
  std::vector<ResultPiece> list_;
};

}  // namespace

std::vector<ResultPiece> expected_result(const Operation& operation) { return Pieces(operation).list(); }

}  // namespace hcclsim::hccl
