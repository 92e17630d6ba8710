#include "hccl/check/symmetric_accesses.hpp"

#include <algorithm>

namespace hcclsim::hccl {

std::array<std::vector<Bytes>, buffer_kinds> borders_of_accesses(const TaskProgram& program, const Rotation& rotation) {
  std::array<std::vector<Bytes>, buffer_kinds> borders;
  for (const ProgramTask& task : program.tasks) {
    if (task.kind == TaskKind::post || task.kind == TaskKind::wait) continue;
    visit_accesses(program, rotation, task, [&](Rank /*rank*/, const ByteRange& piece, bool /*changes*/) {
      std::vector<Bytes>& of_buffer = borders[static_cast<std::size_t>(piece.buffer)];
      of_buffer.push_back(piece.offset);
      of_buffer.push_back(piece.offset + piece.length);
    });
  }
  for (std::uint32_t number = 0; number < buffer_kinds; ++number) {
    std::vector<Bytes>& of_buffer = borders[number];
    const Bytes size = program.size_of_buffer(static_cast<Buffer>(number), 0);
    if (size > 0) of_buffer.insert(of_buffer.end(), {0, size});
    std::sort(of_buffer.begin(), of_buffer.end());
    of_buffer.erase(std::unique(of_buffer.begin(), of_buffer.end()), of_buffer.end());
  }
  return borders;
}

}  // namespace hcclsim::hccl
