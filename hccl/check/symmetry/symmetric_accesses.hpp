#pragma once

#include <vector>

#include "hccl/check/program/interval_map.hpp"
#include "hccl/check/program/task_program.hpp"
#include "hccl/check/symmetry/symmetry.hpp"

/// Accesses of all ranks to the memory of the first ranks, for a program of which only these are unrolled and stand for
/// all.
namespace hcclsim::hccl {

/// Calls visit(rank, owner, bytes, changes) for the accesses to the memory of the first ranks when all images of rank
/// `of` do this task, which moves bytes.
template <typename Visit>
void visit_accesses(const TaskProgram& program, const Rotation& rotation, Rank of, const ProgramTask& task,
                    const Visit& visit) {
  std::vector<ByteRange> pieces;
  // The task touches memory of `owner`, so its image, turned back by as many turns, touches memory of the
  // representative.
  const auto side = [&](const ByteRange& range, Rank owner, bool changes) {
    const Rank turns = rotation.back(rotation.turn_of(owner));
    rotation.turn(range, turns, pieces);
    for (const ByteRange& piece : pieces) {
      visit(rotation.image(of, turns), rotation.representative(owner), piece, changes);
    }
  };
  for (const Movement& movement : program.movements_of(task)) {
    side(movement.source, source_rank(task, of), false);
    side(movement.destination, destination_rank(task, of), true);
  }
}

/// The borders of all accesses to every memory (memory_of) of the first ranks, with those of the buffer itself;
/// ascending.
[[nodiscard]] std::vector<std::vector<Bytes>> borders_of_accesses(const TaskProgram& program, const Rotation& rotation);

}  // namespace hcclsim::hccl
