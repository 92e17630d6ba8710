#include "tests/support/program_interpreter.hpp"

#include <algorithm>
#include <random>

#include "hccl/check/task_run.hpp"

namespace hcclsim::test {

using namespace hccl;

namespace {

std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

std::size_t memory_number(Rank rank, Buffer buffer) {
  return std::size_t{rank} * buffer_kinds + static_cast<std::size_t>(buffer);
}

/// A number for every element of every buffer.
class Memories {
 public:
  explicit Memories(const TaskProgram& program)
      : element_(size_of(program.type)), values_(std::size_t{program.ranks} * buffer_kinds) {
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::ccl}) {
        values_[memory_number(rank, buffer)].resize(program.size_of_buffer(buffer, rank) / element_, 0);
      }
    }
  }

  std::uint64_t* at(Rank rank, const ByteRange& range) {
    return values_[memory_number(rank, range.buffer)].data() + range.offset / element_;
  }
  [[nodiscard]] std::size_t count(const ByteRange& range) const { return range.length / element_; }
  std::vector<std::uint64_t>& all(Rank rank, Buffer buffer) { return values_[memory_number(rank, buffer)]; }
  std::vector<std::vector<std::uint64_t>>& everything() { return values_; }

 private:
  Bytes element_;
  std::vector<std::vector<std::uint64_t>> values_;
};

std::uint64_t contribution(Rank rank, std::size_t element) { return mix((std::uint64_t{rank} << 32U) + element + 1); }

class Run {
 public:
  Run(const TaskProgram& program, std::uint64_t seed)
      : program_(program), random_(seed), memories_(program), chains_(program.chains()), ranks_(program.ranks) {
    slots_.resize(std::size_t{program.ranks} * program.notifies);
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      std::vector<std::uint64_t>& output = memories_.all(rank, Buffer::output);
      for (std::size_t i = 0; i < output.size(); ++i) output[i] = contribution(rank, i);
      for (std::uint64_t& value : memories_.all(rank, Buffer::scratch)) value = random_();
      ranks_[rank].next = program.first_part[rank];
      enter(rank);
    }
  }

  bool sums_up() {
    while (!ready_.empty() && !lost_) {
      // A slow queue waits until chance takes it a second time.
      std::size_t place = random_() % ready_.size();
      if (ready_[place] % 4 == seed_class_) place = random_() % ready_.size();
      std::swap(ready_[place], ready_.back());
      const std::uint32_t chain = ready_.back();
      ready_.pop_back();
      step(chain);
    }
    return !lost_ && ended_ == program_.ranks && right();
  }

 private:
  struct Chain {
    const ProgramPart* part = nullptr;
    std::uint32_t done = 0;
  };
  struct RankState {
    std::size_t next = 0;
    std::size_t running = 0;
  };
  struct Slot {
    bool set = false;
    std::vector<std::uint32_t> waiters;
  };

  void enter(Rank rank) {
    RankState& state = ranks_[rank];
    const std::size_t end = program_.first_part[rank + 1];
    if (state.next == end) {
      ++ended_;
      return;
    }
    for (const std::uint32_t stage = program_.parts[state.next].stage;
         state.next < end && program_.parts[state.next].stage == stage; ++state.next) {
      const ProgramPart& part = program_.parts[state.next];
      chains_[program_.chain(rank, part.queue)] = {&part, 0};
      ready_.push_back(program_.chain(rank, part.queue));
      ++state.running;
    }
  }

  /// Does the next task of a chain that may be able to.
  void step(std::uint32_t number) {
    Chain& chain = chains_[number];
    const Rank rank = program_.rank_of(number);
    const ProgramTask& task = program_.tasks[chain.part->first + chain.done];
    if (task.kind == TaskKind::wait) {
      Slot& slot = slots_[std::size_t{rank} * program_.notifies + task.value];
      if (!slot.set) {
        slot.waiters.push_back(number);
        return;
      }
      slot.set = false;
    } else if (task.kind == TaskKind::post) {
      Slot& slot = slots_[std::size_t{task.peer} * program_.notifies + task.value];
      lost_ = lost_ || slot.set;
      slot.set = true;
      ready_.insert(ready_.end(), slot.waiters.begin(), slot.waiters.end());
      slot.waiters.clear();
    } else {
      move(task, rank);
    }
    if (++chain.done < chain.part->count) {
      ready_.push_back(number);
    } else if (--ranks_[rank].running == 0) {
      enter(rank);
    }
  }

  void move(const ProgramTask& task, Rank rank) {
    for (const Movement& movement : program_.movements_of(task)) {
      const std::uint64_t* source = memories_.at(source_rank(task, rank), movement.source);
      std::uint64_t* destination = memories_.at(destination_rank(task, rank), movement.destination);
      for (std::size_t i = 0; i < memories_.count(movement.source); ++i) {
        destination[i] = (reduces(task.kind) ? destination[i] : 0) + source[i];
      }
    }
  }

  bool right() {
    const std::size_t elements = memories_.all(0, Buffer::output).size();
    for (std::size_t i = 0; i < elements; ++i) {
      std::uint64_t sum = 0;
      for (Rank rank = 0; rank < program_.ranks; ++rank) sum += contribution(rank, i);
      for (Rank rank = 0; rank < program_.ranks; ++rank) {
        if (memories_.all(rank, Buffer::output)[i] != sum) return false;
      }
    }
    return true;
  }

  const TaskProgram& program_;
  std::mt19937_64 random_;
  std::uint64_t seed_class_ = random_() % 4;  // chains that are slow
  Memories memories_;
  std::vector<Chain> chains_;
  std::vector<RankState> ranks_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> ready_;
  Rank ended_ = 0;
  bool lost_ = false;
};

/// Observes a run; folds the accesses of every element into a number.
class ConflictOrder {
 public:
  explicit ConflictOrder(const TaskProgram& program) : program_(program), written_(program), read_(program) {}

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
    for (std::size_t memory = 0; memory < written_.everything().size(); ++memory) {
      const std::vector<std::uint64_t>& reads = read_.everything()[memory];
      const std::vector<std::uint64_t>& writes = written_.everything()[memory];
      for (std::size_t i = 0; i < writes.size(); ++i) all = mix(all + mix(writes[i] + reads[i]) + i);
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
  Memories written_;
  Memories read_;
};

}  // namespace

bool sums_up(const TaskProgram& program, std::uint64_t seed) { return Run(program, seed).sums_up(); }

std::uint64_t conflict_order(const TaskProgram& program) {
  ConflictOrder order(program);
  TaskRun<ConflictOrder>(program, order).run();
  return order.result();
}

}  // namespace hcclsim::test
