#pragma once

#include <array>
#include <vector>

#include "hccl/check/symmetry.hpp"
#include "hccl/check/task_program.hpp"

/// What all ranks do to the memory of rank 0, of a program of which rank 0 is unrolled and stands for all.
namespace hcclsim::hccl {

/// Calls visit(rank, bytes of rank 0, changes) for the accesses to the memory of rank 0 when all ranks do this task of
/// rank 0, which moves bytes.
template <typename Visit>
void visit_accesses(const TaskProgram& program, const Rotation& rotation, const ProgramTask& task, const Visit& visit) {
  std::vector<ByteRange> pieces;
  // Rank 0 touches memory of `owner`, so the rank as far on the other side of rank 0 touches that of rank 0.
  const auto side = [&](const ByteRange& range, Rank owner, bool changes) {
    const Rank rank = rotation.opposite(owner);
    rotation.turn(range, rank, pieces);
    for (const ByteRange& piece : pieces) visit(rank, piece, changes);
  };
  for (const Movement& movement : program.movements_of(task)) {
    side(movement.source, source_rank(task, 0), false);
    side(movement.destination, destination_rank(task, 0), true);
  }
}

/// The borders of all accesses to every buffer of rank 0, with those of the buffer itself; ascending.
[[nodiscard]] std::array<std::vector<Bytes>, buffer_kinds> borders_of_accesses(const TaskProgram& program,
                                                                               const Rotation& rotation);

}  // namespace hcclsim::hccl
