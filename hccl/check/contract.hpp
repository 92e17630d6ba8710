#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hccl/schedule/operation.hpp"

/// What each collective starts from and has to reach, in one place. The *contribution* of a rank is what it holds in
/// the beginning: in place in `output`, otherwise in `input`. All other memory holds nothing.
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
/// Where bytes lie among all blocks is their *place* in a contribution, whatever buffer holds them; in alltoall and
/// send-recv it is where they lie in the sender's buffer.
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
  /// What it must hold in the end, in `output`; whatever else it holds is of no interest.
  [[nodiscard]] std::vector<Holding> required(Rank rank) const;

  /// All ranks must hold the same in the end.
  [[nodiscard]] bool all_end_alike() const;

  /// Bytes that at least one rank must send, and bytes that at least one must reduce, whatever the schedule.
  [[nodiscard]] Bytes least_sent() const;
  [[nodiscard]] Bytes least_reduced() const;
  /// Steps that any schedule needs in which a rank sends to at most `out` others in one step and gets from at most `in`
  /// others. In each step at most 1 + out times as many ranks get to know bytes of one rank; and, seen from the end, at
  /// most 1 + in times as many ranks have a share in what one rank gets.
  [[nodiscard]] std::uint32_t least_steps(std::uint32_t out, std::uint32_t in) const;

 private:
  /// Ranks that need bytes of one rank, and ranks of which one needs bytes: the most there are, itself included.
  struct Spread {
    Rank receivers = 1;
    Rank senders = 1;
  };
  [[nodiscard]] Spread spread() const;
  [[nodiscard]] Spread spread_of_pairs() const;

  [[nodiscard]] Buffer start() const { return operation_.in_place ? Buffer::output : Buffer::input; }
  [[nodiscard]] Bytes bytes(std::uint64_t elements) const { return elements * size_of(operation_.type); }
  /// Where a block lies among all.
  [[nodiscard]] Bytes place_of(Rank block) const;
  /// Blocks from all ranks.
  [[nodiscard]] std::vector<Holding> gathered(Rank rank) const;
  [[nodiscard]] std::vector<Holding> exchanged(Rank rank) const;
  /// Block `block` of a buffer of `rank` that holds all blocks or the rank's own; without `place` and `only`.
  [[nodiscard]] Holding block(Buffer buffer, Rank rank, Rank block) const;

  const Operation& operation_;
};

}  // namespace hcclsim::hccl
