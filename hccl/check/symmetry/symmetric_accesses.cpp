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
  visit_tasks(program, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
    if (is_notify(task.kind)) return;
    visit_accesses(program, rotation, id.rank, task, add);
  });
  finish_borders(program, borders);
  return borders;
}

}  // namespace hcclsim::hccl
