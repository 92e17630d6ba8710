#include "hccl/check/symmetry/symmetric_accesses.hpp"

#include <algorithm>

namespace hcclsim::hccl {

std::vector<std::vector<Bytes>> borders_of_accesses(const TaskProgram& program, const Rotation& rotation) {
  std::vector<std::vector<Bytes>> borders(std::size_t{buffer_kinds} * program.period);
  const auto add = [&](Rank /*rank*/, Rank owner, const ByteRange& piece, bool /*changes*/) {
    std::vector<Bytes>& of_memory = borders[memory_of(owner, piece.buffer)];
    of_memory.push_back(piece.offset);
    of_memory.push_back(piece.offset + piece.length);
  };
  for (Rank rank = 0; rank < program.period; ++rank) {
    for (std::size_t i = program.first_part[rank]; i < program.first_part[rank + 1]; ++i) {
      const ProgramPart& part = program.parts[i];
      for (std::uint32_t k = 0; k < part.count; ++k) {
        const ProgramTask& task = program.tasks[part.first + k];
        if (task.kind == TaskKind::post || task.kind == TaskKind::wait) continue;
        visit_accesses(program, rotation, rank, task, add);
      }
    }
  }
  finish_borders(program, borders);
  return borders;
}

}  // namespace hcclsim::hccl
