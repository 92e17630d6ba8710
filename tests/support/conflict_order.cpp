#include "tests/support/conflict_order.hpp"

#include <vector>

#include "hccl/check/task_run.hpp"
#include "tests/support/program_memory.hpp"

namespace hcclsim::test {

using namespace hccl;

namespace {

/// Observes a run; folds the accesses of every element into a number.
class ConflictOrder {
 public:
  explicit ConflictOrder(const TaskProgram& program) : program_(program), written_(program, 0), read_(program, 0) {}

  void enter(Rank /*rank*/, const ProgramPart* /*begin*/, const ProgramPart* /*end*/) {}
  void leave(Rank /*rank*/) {}

  void perform(std::uint32_t chain, std::uint32_t /*number*/, const ProgramTask& task) {
    if (task.kind == TaskKind::post || task.kind == TaskKind::wait) return;
    const Rank rank = program_.rank_of(chain);
    for (const Movement& movement : program_.movements_of(task)) perform(task, movement, rank);
  }

  void perform(const ProgramTask& task, const Movement& movement, Rank rank) {
    const std::uint64_t name = name_of_task(task, movement, rank);
    std::uint64_t* reads = read_.at(source_rank(task, rank), movement.source);
    // A sum, since the order of reads does not matter.
    for (std::size_t i = 0; i < read_.count(movement.source); ++i) reads[i] += name;
    const Rank to = destination_rank(task, rank);
    reads = read_.at(to, movement.destination);
    std::uint64_t* writes = written_.at(to, movement.destination);
    for (std::size_t i = 0; i < written_.count(movement.destination); ++i) {
      writes[i] = mix(mix(writes[i] + reads[i]) + name);
      reads[i] = 0;
    }
  }

  std::uint64_t result() {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < written_.all().size(); ++i) {
      all = mix(all + mix(written_.all()[i] + read_.all()[i]) + i);
    }
    return all;
  }

 private:
  static std::uint64_t name_of_task(const ProgramTask& task, const Movement& movement, Rank rank) {
    std::uint64_t name = mix(static_cast<std::uint64_t>(task.kind) * 1000003 + rank * 1009 + task.peer + 1);
    for (const ByteRange& range : {movement.source, movement.destination}) {
      name = mix(name + range.offset * 8 + static_cast<std::uint64_t>(range.buffer));
      name = mix(name + range.length);
    }
    return name;
  }

  const TaskProgram& program_;
  ProgramMemory<std::uint64_t> written_;
  ProgramMemory<std::uint64_t> read_;
};

}  // namespace

std::uint64_t conflict_order(const TaskProgram& program) {
  ConflictOrder order(program);
  TaskRun<ConflictOrder>(program, order).run();
  return order.result();
}

}  // namespace hcclsim::test
