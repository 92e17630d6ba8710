#pragma once

#include <cstdint>
#include <vector>

#include "hccl/schedule/schedule.hpp"

/// What a schedule does to memory, without clocks, queues and notifies: a list of moves, to be done in this order. It
/// is one of the orders that the schedule's synchronisation allows; a correct schedule gives the same results in all of
/// them.
///
/// Scratch memory, and likewise the buffer `ccl`, is renamed on the way: a slot is used again and again for unrelated
/// bytes, so every plain write into scratch memory begins a new memory here. Then moves are connected only if data
/// flows between them.
namespace hcclsim::hccl {

/// destination = source, or destination = destination (op) source, on `length` bytes.
struct Move {
  std::uint32_t destination = 0;  ///< number of a memory
  std::uint32_t source = 0;
  Bytes destination_offset = 0;
  Bytes source_offset = 0;
  Bytes length = 0;
  bool reduces = false;
};

struct MoveList {
  Rank ranks = 0;
  /// Sizes of the memories in bytes: first the outputs of all ranks, then their inputs, then the versions of scratch
  /// memory.
  std::vector<Bytes> memories;
  std::vector<Move> moves;

  [[nodiscard]] bool is_output(std::uint32_t memory) const { return memory < ranks; }
  [[nodiscard]] bool is_input(std::uint32_t memory) const { return memory >= ranks && memory < 2 * ranks; }
};

/// Walks every queue of every rank once; it goes on with a rank until that has to wait. Throws Error(simulated_failure,
/// "deadlock") if ranks wait for ever, Error(simulated_failure, "notify") if a notify slot is set twice,
/// Error(bad_input, "schedule") for byte ranges that leave their buffer, overlap, have different lengths or cut an
/// element in two, for reads of scratch memory that nobody wrote, and for peers or notify slots that do not exist.
[[nodiscard]] MoveList moves_of(const Schedule& schedule);

}  // namespace hcclsim::hccl
