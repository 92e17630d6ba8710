#include "hccl/check/distances.hpp"

#include <algorithm>
#include <vector>

#include "hccl/check/contract.hpp"
#include "hccl/check/program/task_run.hpp"

namespace hcclsim::hccl {
namespace {

/// Observes a run; counts.
class Count {
 public:
  explicit Count(const TaskProgram& program)
      : program_(program),
        steps_(program.chains(), 0),
        posted_(std::size_t{program.unrolled()} * program.notifies, 0),
        out_(program.unrolled()),
        in_(program.unrolled()),
        sent_(program.unrolled(), 0),
        reduced_(program.unrolled(), 0) {}

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) {
    const std::uint32_t most = join(rank);
    for (; begin != end; ++begin) steps_[program_.chain(rank, begin->queue)] = most;
  }
  void leave(Rank rank) { most_steps_ = std::max(most_steps_, join(rank)); }

  void perform(std::uint32_t chain, std::uint32_t /*number*/, const ProgramTask& task) {
    const Rank rank = program_.rank_of(chain);
    if (is_post(task.kind)) {
      const Rank peer = program_.representative(task.peer);
      if (program_.collective == Collective::barrier && has_peer(task.kind)) step(chain, rank, peer);
      posted_[std::size_t{peer} * program_.notifies + task.value] = steps_[chain];
    } else if (is_wait(task.kind)) {
      steps_[chain] = std::max(steps_[chain], posted_[std::size_t{rank} * program_.notifies + task.value]);
    } else {
      Bytes length = 0;
      for (const Movement& movement : program_.movements_of(task)) length += movement.source.length;
      if (length == 0) return;
      if (is_transfer(task.kind)) {
        const Rank from = program_.representative(source_rank(task, rank));
        step(chain, from, program_.representative(destination_rank(task, rank)));
        sent_[from] += length;
      }
      if (reduces(task.kind)) reduced_[program_.representative(destination_rank(task, rank))] += length;
    }
  }

  [[nodiscard]] std::uint32_t steps() const { return most_steps_; }
  /// Most transfers of one step that leave a rank, and most that come to one.
  [[nodiscard]] std::uint32_t most_out() const { return most_of(out_); }
  [[nodiscard]] std::uint32_t most_in() const { return most_of(in_); }
  [[nodiscard]] Bytes sent() const { return *std::max_element(sent_.begin(), sent_.end()); }
  [[nodiscard]] Bytes reduced() const { return *std::max_element(reduced_.begin(), reduced_.end()); }

 private:
  /// By rank and step, counted from 0.
  using StepCounts = std::vector<std::vector<std::uint16_t>>;

  void step(std::uint32_t chain, Rank from, Rank to) {
    const std::uint32_t number = steps_[chain]++;
    for (std::vector<std::uint16_t>* counts : {&out_[from], &in_[to]}) {
      if (counts->size() <= number) counts->resize(number + 1, 0);
      ++(*counts)[number];
    }
  }
  [[nodiscard]] static std::uint32_t most_of(const StepCounts& counts) {
    std::uint32_t most = 0;
    for (const std::vector<std::uint16_t>& of_rank : counts) {
      for (const std::uint32_t count : of_rank) most = std::max(most, count);
    }
    return most;
  }

  [[nodiscard]] std::uint32_t join(Rank rank) const {
    const auto first = steps_.begin() + program_.chain(rank, 0);
    return *std::max_element(first, first + program_.queues);
  }

  const TaskProgram& program_;
  std::vector<std::uint32_t> steps_;   // transfers one after the other, by chain
  std::vector<std::uint32_t> posted_;  // the same at the post, by notify slot
  StepCounts out_;
  StepCounts in_;
  std::vector<Bytes> sent_;  // by rank
  std::vector<Bytes> reduced_;
  std::uint32_t most_steps_ = 0;
};

}  // namespace

Distances distances_of(const TaskProgram& program) {
  Count count(program);
  TaskRun<Count>(program, count).run();
  const Contract contract(program);
  return {.steps = count.steps(),
          .least_steps = contract.least_steps(count.most_out(), count.most_in()),
          .sent = count.sent(),
          .least_sent = contract.least_sent(),
          .reduced = count.reduced(),
          .least_reduced = contract.least_reduced()};
}

}  // namespace hcclsim::hccl
