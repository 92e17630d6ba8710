#include "tests/support/collectives/conflict_order.hpp"

#include "hccl/check/program/task_run.hpp"
#include "tests/support/training/program_memory.hpp"

namespace hcclsim::test {

using namespace hccl;

namespace {

/// Observes a run; folds the accesses of every element into a number.
class ConflictOrder {
 public:
  ConflictOrder(const TaskProgram& program, const std::vector<Values>& input)
      : program_(program), values_(starting_memory(program, input)), written_(program, 0), read_(program, 0) {}

  void enter(Rank /*rank*/, const ProgramPart* /*begin*/, const ProgramPart* /*end*/) {}
  void leave(Rank /*rank*/) {}

  void perform(std::uint32_t chain, std::uint32_t /*number*/, const ProgramTask& task) {
    if (is_post(task.kind) || is_wait(task.kind)) return;
    const Rank rank = program_.rank_of(chain);
    const Rank from = source_rank(task, rank);
    const Rank to = destination_rank(task, rank);
    const std::uint64_t name = mix(static_cast<std::uint64_t>(task.kind) * 1000003 + rank * 1009 + task.peer + 1);
    for (const Movement& movement : program_.movements_of(task)) {
      const std::size_t source = values_.index(from, movement.source);
      const std::size_t destination = values_.index(to, movement.destination);
      for (std::size_t i = 0; i < values_.count(movement.source); ++i) {
        perform(name, source + i, destination + i, reduces(task.kind));
      }
    }
  }

  [[nodiscard]] std::uint64_t result() const {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < written_.all().size(); ++i) {
      all = mix(all + mix(written_.all()[i] + read_.all()[i]) + i);
    }
    return all;
  }

 private:
  void perform(std::uint64_t task, std::size_t source, std::size_t destination, bool reduces) {
    std::int64_t& value = values_.all()[destination];
    const std::int64_t made = moved(values_.all()[source], value, reduces);
    if (made == value) return;
    value = made;
    const std::uint64_t name = mix(mix(task + source) + destination);
    // A sum, since the order of reads does not matter.
    read_.all()[source] += name;
    std::uint64_t& reads = read_.all()[destination];
    std::uint64_t& writes = written_.all()[destination];
    writes = mix(mix(writes + reads) + name);
    reads = 0;
  }

  const TaskProgram& program_;
  ProgramMemory<std::int64_t> values_;
  ProgramMemory<std::uint64_t> written_;
  ProgramMemory<std::uint64_t> read_;
};

}  // namespace

std::uint64_t conflict_order(const TaskProgram& program, const std::vector<Values>& input) {
  ConflictOrder order(program, input);
  TaskRun<ConflictOrder>(program, order).run();
  return order.result();
}

}  // namespace hcclsim::test
