#include "hccl/check/program/interval_map.hpp"

namespace hcclsim::hccl {

std::vector<std::vector<Bytes>> access_borders(const TaskProgram& program) {
  std::vector<std::vector<Bytes>> borders(std::size_t{buffer_kinds} * program.ranks);
  const auto add = [&](Rank rank, const ByteRange& range) {
    std::vector<Bytes>& of_memory = borders[memory_of(rank, range.buffer)];
    of_memory.push_back(range.offset);
    of_memory.push_back(range.offset + range.length);
  };
  visit_movements(program, [&](std::uint32_t chain, const ProgramTask& task, const Movement& movement) {
    const Rank rank = program.rank_of(chain);
    add(source_rank(task, rank), movement.source);
    add(destination_rank(task, rank), movement.destination);
  });
  finish_borders(program, borders);
  return borders;
}

void finish_borders(const TaskProgram& program, std::vector<std::vector<Bytes>>& borders) {
  for (std::size_t memory = 0; memory < borders.size(); ++memory) {
    std::vector<Bytes>& of_memory = borders[memory];
    const Bytes size =
        program.size_of_buffer(static_cast<Buffer>(memory % buffer_kinds), static_cast<Rank>(memory / buffer_kinds));
    if (size == 0) continue;
    of_memory.push_back(0);
    of_memory.push_back(size);
    std::sort(of_memory.begin(), of_memory.end());
    of_memory.erase(std::unique(of_memory.begin(), of_memory.end()), of_memory.end());
    of_memory.shrink_to_fit();
  }
}

}  // namespace hcclsim::hccl
