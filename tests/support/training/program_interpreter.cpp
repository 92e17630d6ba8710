#include "tests/support/training/program_interpreter.hpp"

#include <algorithm>
#include <random>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "tests/support/training/program_memory.hpp"

namespace hcclsim::test {

using namespace hccl;

namespace {

/// A program somewhere between its beginning and its end.
class Machine {
 public:
  Machine(const TaskProgram& program, const std::vector<Values>& input)
      : program_(&program),
        memory_(starting_memory(program, input)),
        chains_(program.chains()),
        ranks_(program.ranks),
        set_(std::size_t{program.ranks} * program.notifies, 0) {
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      ranks_[rank].next = program.first_part[rank];
      enter(rank);
    }
  }

  /// The next task of a chain, or null.
  [[nodiscard]] const ProgramTask* next(std::uint32_t chain) const {
    const Chain& state = chains_[chain];
    return state.part == nullptr ? nullptr : &program_->tasks[state.part->first + state.done];
  }
  [[nodiscard]] std::size_t slot_of(std::uint32_t chain, const ProgramTask& task) const {
    const Rank owner = is_post(task.kind) ? task.peer : program_->rank_of(chain);
    return std::size_t{owner} * program_->notifies + task.value;
  }
  [[nodiscard]] bool can_go_on(std::uint32_t chain) const {
    const ProgramTask* task = next(chain);
    return task != nullptr && (!is_wait(task->kind) || set_[slot_of(chain, *task)] != 0);
  }

  /// Does the next task of a chain that can go on. True if the rank has gone on to another stage by it, or has ended.
  bool step(std::uint32_t number) {
    const ProgramTask& task = *next(number);
    const Rank rank = program_->rank_of(number);
    ranks_[rank].begun = true;
    if (is_wait(task.kind)) {
      set_[slot_of(number, task)] = 0;
    } else if (is_post(task.kind)) {
      char& set = set_[slot_of(number, task)];
      wrong_ = wrong_ || set != 0;
      set = 1;
    } else {
      move(task, rank);
    }
    Chain& chain = chains_[number];
    if (++chain.done < chain.part->count) return false;
    chain = {};
    if (--ranks_[rank].running > 0) return false;
    enter(rank);
    return true;
  }

  [[nodiscard]] bool wrong() const { return wrong_; }
  [[nodiscard]] bool ended() const { return ended_ == program_->ranks; }
  [[nodiscard]] bool holds(const Expectation& expected) {
    for (Rank rank = 0; rank < program_->ranks; ++rank) {
      const std::int64_t* output = memory_.at(rank, Buffer::output);
      for (std::size_t i = 0; i < expected[rank].size(); ++i) {
        if (expected[rank][i] && output[i] != *expected[rank][i]) return false;
      }
    }
    return true;
  }
  /// Of all that the future depends on.
  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t all = 0;
    const auto fold = [&](std::uint64_t value) { all = mix(all + value + 1); };
    for (const Chain& chain : chains_) fold(chain.part == nullptr ? 0 : chain.part->first + chain.done + 1);
    for (const RankState& rank : ranks_) fold(2 * rank.next + (rank.begun ? 1 : 0));
    for (const char set : set_) fold(static_cast<std::uint64_t>(set));
    for (const std::int64_t value : memory_.all()) fold(static_cast<std::uint64_t>(value));
    return all;
  }

 private:
  struct Chain {
    const ProgramPart* part = nullptr;
    std::uint32_t done = 0;
  };
  struct RankState {
    std::size_t next = 0;
    std::size_t running = 0;
    bool begun = false;
  };

  void enter(Rank rank) {
    RankState& state = ranks_[rank];
    const std::size_t end = program_->first_part[rank + 1];
    if (state.next == end) {
      ++ended_;
      const auto begun = [](const RankState& one) { return one.begun; };
      if (program_->collective == Collective::barrier && program_->ranks > 1) {
        wrong_ = wrong_ || !std::all_of(ranks_.begin(), ranks_.end(), begun);
      }
      return;
    }
    for (const std::uint32_t stage = program_->parts[state.next].stage;
         state.next < end && program_->parts[state.next].stage == stage; ++state.next) {
      const ProgramPart& part = program_->parts[state.next];
      chains_[program_->chain(rank, part.queue)] = {&part, 0};
      ++state.running;
    }
  }

  void move(const ProgramTask& task, Rank rank) {
    for (const Movement& movement : program_->movements_of(task)) {
      std::size_t source = memory_.index(source_rank(task, rank), movement.source);
      std::size_t destination = memory_.index(destination_rank(task, rank), movement.destination);
      for (std::size_t left = memory_.count(movement.source); left > 0; --left, ++source, ++destination) {
        std::int64_t& value = memory_.all()[destination];
        value = moved(memory_.all()[source], value, reduces(task.kind));
      }
    }
  }

  const TaskProgram* program_;
  ProgramMemory<std::int64_t> memory_;
  std::vector<Chain> chains_;
  std::vector<RankState> ranks_;
  std::vector<char> set_;  // notify slots
  Rank ended_ = 0;
  bool wrong_ = false;
};

/// Lets a machine go on in random order until it ends or stops.
class RandomRun {
 public:
  RandomRun(const TaskProgram& program, Machine& machine, std::uint64_t seed)
      : program_(program),
        machine_(machine),
        random_(seed),
        slow_(random_() % 4),
        waiters_(std::size_t{program.ranks} * program.notifies) {}

  void run() {
    for (Rank rank = 0; rank < program_.ranks; ++rank) add_queues(rank);
    while (!ready_.empty() && !machine_.wrong()) {
      // A slow queue waits until chance takes it a second time.
      std::size_t place = random_() % ready_.size();
      if (ready_[place] % 4 == slow_) place = random_() % ready_.size();
      std::swap(ready_[place], ready_.back());
      const std::uint32_t chain = ready_.back();
      ready_.pop_back();
      advance(chain);
    }
  }

 private:
  void add_queues(Rank rank) {
    for (std::uint32_t queue = 0; queue < program_.queues; ++queue) {
      const std::uint32_t chain = program_.chain(rank, queue);
      if (machine_.next(chain) != nullptr) ready_.push_back(chain);
    }
  }

  void advance(std::uint32_t chain) {
    const ProgramTask& task = *machine_.next(chain);
    if (!machine_.can_go_on(chain)) {
      waiters_[machine_.slot_of(chain, task)].push_back(chain);
      return;
    }
    if (is_post(task.kind)) {
      std::vector<std::uint32_t>& waiters = waiters_[machine_.slot_of(chain, task)];
      ready_.insert(ready_.end(), waiters.begin(), waiters.end());
      waiters.clear();
    }
    if (machine_.step(chain)) {
      add_queues(program_.rank_of(chain));
    } else if (machine_.next(chain) != nullptr) {
      ready_.push_back(chain);
    }
  }

  const TaskProgram& program_;
  Machine& machine_;
  std::mt19937_64 random_;
  std::uint64_t slow_;  // a class of chains
  std::vector<std::uint32_t> ready_;
  std::vector<std::vector<std::uint32_t>> waiters_;  // by notify slot
};

}  // namespace

Trial::Trial(const Operation& operation)
    : input_(make_input(operation, 1)), expected_(expected_result(operation, input_)) {
  if (operation.op != ReduceOp::sum) internal_error("trials are for sums");
}

bool Trial::succeeds(const TaskProgram& program, std::uint64_t seed) const {
  Machine machine(program, input_);
  RandomRun(program, machine, seed).run();
  return !machine.wrong() && machine.ended() && machine.holds(expected_);
}

bool Trial::succeeds_in_every_order(const TaskProgram& program, std::size_t most_states) const {
  std::vector<Machine> left{Machine(program, input_)};
  std::unordered_set<std::uint64_t> seen{left.back().hash()};
  while (!left.empty()) {
    Machine machine = std::move(left.back());
    left.pop_back();
    bool stopped = true;
    for (std::uint32_t chain = 0; chain < program.chains(); ++chain) {
      if (!machine.can_go_on(chain)) continue;
      stopped = false;
      Machine next = machine;
      next.step(chain);
      if (next.wrong()) return false;
      if (!seen.insert(next.hash()).second) continue;
      if (seen.size() > most_states) internal_error("more than {} states", most_states);
      left.push_back(std::move(next));
    }
    if (stopped && (!machine.ended() || !machine.holds(expected_))) return false;
  }
  return true;
}

}  // namespace hcclsim::test
