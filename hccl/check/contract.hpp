#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/schedule/operation.hpp"

/// What each collective starts from and has to reach. The *contribution* of a rank is what it holds in the beginning:
/// in `output` if the collective is in place, otherwise in `input`. All other memory holds nothing.
///
///     collective       starts from                    has to reach
///     allreduce        everybody: all bytes           everybody: the reduction of all
///     reduce           everybody: all bytes           root: the reduction of all
///     broadcast        root: all bytes                everybody: the root's
///     reduce-scatter   everybody: all blocks          rank r: block r of the reduction
///     scatter          root: all blocks               rank r: block r of the root's
///     allgather        rank r: block r                everybody: block r of rank r, for all r
///     gather           rank r: block r                root: block r of rank r, for all r
///     alltoall         everybody: all blocks          rank d: block d of rank s as block s, for all s
///     send-recv        everybody: all blocks          the same; without counts: the block of the rank before
///     barrier          nothing                        no bytes: nobody ends before everybody has begun
///
/// The *place* of bytes in a contribution is their offset among all blocks, whatever buffer holds them; in alltoall and
/// send-recv it is their offset in the sender's buffer.
namespace hcclsim::hccl {

/// Bytes offset … offset+length of a buffer hold the bytes from `place` on of the contribution of one rank, or of the
/// reduction of all.
struct Holding {
  Buffer buffer = Buffer::output;
  Bytes offset = 0;
  Bytes length = 0;
  Bytes place = 0;
  std::optional<Rank> only{};  ///< nobody: each rank exactly once

  /// A byte at offset o comes from place o + shift.
  [[nodiscard]] std::int64_t shift() const { return static_cast<std::int64_t>(place - offset); }
};

class Contract {
 public:
  /// `operation` must outlive the contract.
  explicit Contract(const Operation& operation) : operation_(operation) {}

  /// What a rank holds in the beginning.
  [[nodiscard]] std::vector<Holding> initial(Rank rank) const;
  /// What a rank must hold in the end, in `output`; what it holds elsewhere does not matter.
  [[nodiscard]] std::vector<Holding> required(Rank rank) const;

  /// All ranks must hold the same in the end.
  [[nodiscard]] bool all_end_alike() const;

  /// Bytes that at least one rank must send, and bytes that at least one must reduce, whatever the schedule.
  [[nodiscard]] Bytes least_sent() const;
  [[nodiscard]] Bytes least_reduced() const;
  /// The least number of steps of any schedule in which a rank sends to at most `out` others and receives from at most
  /// `in` others in one step. In each step, the number of ranks that have bytes of a given rank grows at most by the
  /// factor 1 + out; and, seen from the end, the number of ranks that contribute to what a given rank gets grows at
  /// most by the factor 1 + in.
  [[nodiscard]] std::uint32_t least_steps(std::uint32_t out, std::uint32_t in) const;

 private:
  /// The largest number of ranks that need bytes of one rank, and the largest number of ranks whose bytes one rank
  /// needs, itself included.
  struct Spread {
    Rank receivers = 1;
    Rank senders = 1;
  };
  [[nodiscard]] Spread spread() const;
  [[nodiscard]] Spread spread_of_pairs() const;

  [[nodiscard]] Buffer start() const { return operation_.in_place ? Buffer::output : Buffer::input; }
  [[nodiscard]] Bytes bytes(std::uint64_t elements) const { return elements * size_of(operation_.type); }
  /// Offset of a block among all blocks.
  [[nodiscard]] Bytes place_of(Rank block) const;
  /// Blocks from all ranks: their own ones, or those that they had for `rank`.
  [[nodiscard]] std::vector<Holding> from_all(Rank rank, bool exchanged) const;
  /// Block `block` in a buffer of `rank`, which holds all blocks or only the rank's own; `place` and `only` are not
  /// filled in.
  [[nodiscard]] Holding block(Buffer buffer, Rank rank, Rank block) const;

  const Operation& operation_;
};

}  // namespace hcclsim::hccl
