#include "hccl/check/distances.hpp"

#include <algorithm>
#include <vector>

#include "hccl/check/contract.hpp"
#include "hccl/check/task_run.hpp"

namespace hcclsim::hccl {
namespace {

/// Observes a run; counts.
class Count {
 public:
  explicit Count(const TaskProgram& program)
      : program_(program),
        steps_(program.chains(), 0),
        posted_(std::size_t{program.ranks} * program.notifies, 0),
        sent_(program.ranks, 0),
        reduced_(program.ranks, 0) {}

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) {
    const std::uint32_t most = join(rank);
    for (; begin != end; ++begin) steps_[program_.chain(rank, begin->queue)] = most;
  }
  void leave(Rank rank) { most_steps_ = std::max(most_steps_, join(rank)); }

  void perform(std::uint32_t chain, std::uint32_t /*number*/, const ProgramTask& task) {
    const Rank rank = program_.rank_of(chain);
    if (task.kind == TaskKind::post) {
      posted_[std::size_t{task.peer} * program_.notifies + task.value] = steps_[chain];
    } else if (task.kind == TaskKind::wait) {
      steps_[chain] = std::max(steps_[chain], posted_[std::size_t{rank} * program_.notifies + task.value]);
    } else {
      Bytes length = 0;
      for (const Movement& movement : program_.movements_of(task)) length += movement.source.length;
      if (length == 0) return;
      if (is_transfer(task.kind)) {
        ++steps_[chain];
        sent_[source_rank(task, rank)] += length;
      }
      if (reduces(task.kind)) reduced_[destination_rank(task, rank)] += length;
    }
  }

  [[nodiscard]] std::uint32_t steps() const { return most_steps_; }
  [[nodiscard]] Bytes sent() const { return *std::max_element(sent_.begin(), sent_.end()); }
  [[nodiscard]] Bytes reduced() const { return *std::max_element(reduced_.begin(), reduced_.end()); }

 private:
  [[nodiscard]] std::uint32_t join(Rank rank) const {
    const auto first = steps_.begin() + program_.chain(rank, 0);
    return *std::max_element(first, first + program_.queues);
  }

  const TaskProgram& program_;
  std::vector<std::uint32_t> steps_;   // transfers one after the other, by chain
  std::vector<std::uint32_t> posted_;  // the same at the post, by notify slot
  std::vector<Bytes> sent_;            // by rank
  std::vector<Bytes> reduced_;
  std::uint32_t most_steps_ = 0;
};

}  // namespace

Distances distances_of(const TaskProgram& program) {
  Count count(program);
  TaskRun<Count>(program, count).run();
  const Contract contract(program);
  Distances distances{.steps = count.steps(),
                      .sent = count.sent(),
                      .least_sent = contract.least_sent(),
                      .reduced = count.reduced(),
                      .least_reduced = contract.least_reduced()};
  for (std::uint64_t known = 1; known < program.ranks && program.payload() > 0; known *= program.queues + 1) {
    ++distances.least_steps;
  }
  return distances;
}

}  // namespace hcclsim::hccl
