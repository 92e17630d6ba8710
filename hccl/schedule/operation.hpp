#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// What a collective is asked to do, and how its payload lies in the buffers of the ranks.
///
/// The payload of most collectives falls into *blocks*, one for every rank: what a rank contributes to an all-gather,
/// gets from a reduce-scatter, or sends to one other rank in an all-to-all. A buffer holds all blocks one after the
/// other, or only the rank's own block. Allreduce, broadcast and reduce have a single block, the payload.
///
///     collective       input of a rank     output of a rank
///     allreduce        payload             payload
///     broadcast        payload, root's     payload
///     reduce           payload             payload, at the root
///     reduce-scatter   all blocks          own block
///     scatter          all blocks, root's  own block
///     allgather        own block           all blocks
///     gather           own block           all blocks, at the root
///     alltoall         block d to rank d   block s from rank s
///     send-recv        block d to rank d   block s from rank s; without counts: one block to the next rank
///     barrier          nothing             nothing
///
/// In place there is one buffer, `output`, with all blocks on every rank. The rank's own block is at its place among
/// them, before and after the operation, and so is a root's data.
namespace hcclsim::hccl {

/// Memory of a rank, bound to real memory at run time. In place, `output` alone is the user's; `ccl` is the
/// communicator's own buffer, through which single operations move their payload; `scratch` is what an algorithm needs.
enum class Buffer : std::uint8_t { input, output, scratch, ccl };
inline constexpr std::uint32_t buffer_kinds = 4;

[[nodiscard]] std::string_view name_of(Buffer buffer);

enum class Collective : std::uint8_t {
  allreduce,
  reduce_scatter,
  allgather,
  broadcast,
  reduce,
  scatter,
  gather,
  alltoall,
  send_recv,
  barrier,
};

[[nodiscard]] std::string_view name_of(Collective collective);
/// Inverse of name_of ("allreduce", "reduce-scatter", …); throws Error(bad_input, "option") that lists the names.
[[nodiscard]] Collective parse_collective(std::string_view name);

/// Sizes in elements, and places, of blocks that differ: one size per block (ReduceScatterV, AllGatherV), or one per
/// pair of ranks (AlltoAllV, AlltoAllVC, BatchSendRecv). Blocks follow each other without gaps.
class BlockCounts {
 public:
  BlockCounts() = default;
  /// One count for every block.
  static BlockCounts of_blocks(std::vector<std::uint64_t> counts);
  /// What rank s sends to rank d: counts[s·ranks + d].
  static BlockCounts of_pairs(Rank ranks, std::vector<std::uint64_t> counts);

  [[nodiscard]] bool empty() const { return counts_.empty(); }
  /// The counts as they were given.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }

  /// Elements before block `block` of row `row` (of_blocks: row 0; of_pairs: the sender); block = their number: all.
  [[nodiscard]] std::uint64_t offset(Rank row, Rank block) const {
    return offsets_[row * (std::size_t{width_} + 1) + block];
  }
  /// of_pairs: elements from the senders before `sender` to rank `receiver`.
  [[nodiscard]] std::uint64_t received_offset(Rank receiver, Rank sender) const {
    return received_[receiver * (std::size_t{width_} + 1) + sender];
  }
  [[nodiscard]] std::uint64_t largest() const;

  bool operator==(const BlockCounts&) const = default;

 private:
  Rank width_ = 0;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> offsets_;   // width + 1 for every row
  std::vector<std::uint64_t> received_;  // the same of the transposed counts
};

struct Operation {
  Rank ranks = 1;
  /// Elements of one block; for allreduce, broadcast and reduce this is the payload. Ignored if there are counts.
  std::uint64_t elements = 0;
  DataType type = DataType::fp32;
  ReduceOp op = ReduceOp::sum;
  /// Slices of a block begin at multiples of this many bytes, a multiple of the element size. HCCL cuts at multiples of
  /// 128 B, which inline reduction on 910A requires.
  Bytes alignment = 128;
  Collective collective = Collective::allreduce;
  Rank root = 0;  ///< of broadcast, reduce, scatter and gather
  bool in_place = true;
  BlockCounts counts{};

  /// Elements of a buffer, counted from its beginning.
  struct Block {
    std::uint64_t offset = 0;
    std::uint64_t elements = 0;
  };

  /// Blocks of a buffer that holds all of them.
  [[nodiscard]] Rank blocks() const;
  /// The buffer holds all blocks, not only the rank's own. True of `ccl` and `scratch`, whose layout follows from it.
  [[nodiscard]] bool holds_all(Buffer buffer) const;
  [[nodiscard]] Rank blocks_in(Buffer buffer) const { return holds_all(buffer) ? blocks() : 1; }
  /// Block `index` of the blocks that a buffer of rank `owner` holds.
  [[nodiscard]] Block block(Buffer buffer, Rank owner, Rank index) const;
  [[nodiscard]] std::uint64_t largest_block() const { return counts.empty() ? elements : counts.largest(); }

  /// Bytes of the user's buffers of a rank (`input`, `output`).
  [[nodiscard]] Bytes size(Buffer buffer, Rank owner) const;
  /// Bytes of all blocks; if blocks differ by pairs of ranks, the most that one rank sends.
  [[nodiscard]] Bytes payload() const;

  bool operator==(const Operation&) const = default;

 private:
  [[nodiscard]] std::uint64_t elements_of(Buffer buffer, Rank owner) const;
};

[[nodiscard]] constexpr bool is_rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::scatter ||
         collective == Collective::gather;
}
/// Its counts, if it has any, are those of pairs of ranks.
[[nodiscard]] constexpr bool counts_pairs(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::send_recv;
}
/// Contributions are combined by the operator.
[[nodiscard]] constexpr bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

/// Throws Error(bad_input, "operation") for an operation that is impossible: no ranks, a root that is not a rank, a
/// wrong number of counts, counts for a collective that takes none, an alltoall in place whose counts differ, a
/// send-recv in place.
void require_possible(const Operation& operation);

/// Largest power of two that divides the addresses of all blocks, at most the alignment of slices.
[[nodiscard]] Bytes alignment_of_blocks(const Operation& operation);

}  // namespace hcclsim::hccl
