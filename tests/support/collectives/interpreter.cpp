#include "tests/support/collectives/interpreter.hpp"

#include <algorithm>
#include <array>
#include <random>

#include "base/error.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::test {
namespace {

using hccl::Buffer;
using hccl::ByteRange;
using hccl::QueueWalk;
using hccl::Schedule;
using hccl::Task;

struct Queue {
  QueueWalk walk;
  bool active = false;
};

struct RankState {
  std::uint32_t stage = 0;
  bool entered = false;
  std::vector<Queue> queues;
  std::vector<bool> slots;
  std::array<Values, hccl::buffer_kinds> memory;
};

class Interpreter {
 public:
  Interpreter(const Schedule& schedule, const std::vector<Values>& input) : schedule_(schedule) {
    const Bytes element = size_of(schedule.type);
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      RankState state;
      state.queues.resize(schedule.queues);
      state.slots.resize(schedule.notifies);
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::ccl}) {
        state.memory[static_cast<std::size_t>(buffer)].assign(schedule.size(buffer, rank) / element, -77777);
      }
      state.memory[static_cast<std::size_t>(schedule.in_place ? Buffer::output : Buffer::input)] = input[rank];
      ranks_.push_back(std::move(state));
    }
    result_.bytes_written.assign(schedule.ranks, 0);
  }

  Execution run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Rank> order(schedule_.ranks);
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) order[rank] = rank;
    for (bool moved = true; moved;) {
      moved = false;
      std::shuffle(order.begin(), order.end(), random);
      for (const Rank rank : order) moved = step(rank) || moved;
    }
    for (RankState& rank : ranks_) {
      if (rank.stage != schedule_.stage_count()) simulated_failure("deadlock", "a rank stops in stage {}", rank.stage);
      result_.output.push_back(std::move(rank.memory[static_cast<std::size_t>(Buffer::output)]));
    }
    return std::move(result_);
  }

 private:
  /// Lets every queue of a rank do at most one task.
  bool step(Rank number) {
    RankState& rank = ranks_[number];
    if (rank.stage == schedule_.stage_count()) return false;
    if (!rank.entered) {
      for (std::uint32_t q = 0; q < rank.queues.size(); ++q) {
        rank.queues[q].active = rank.queues[q].walk.enter(schedule_, rank.stage, number, q);
      }
      rank.entered = true;
      return true;
    }
    bool moved = false;
    bool all_ended = true;
    for (Queue& queue : rank.queues) {
      if (!queue.active || queue.walk.task() == nullptr) continue;
      all_ended = false;
      if (!perform(number, queue.walk)) continue;
      queue.walk.next();
      moved = true;
    }
    if (all_ended) {
      ++rank.stage;
      rank.entered = false;
      return true;
    }
    return moved;
  }

  bool perform(Rank number, QueueWalk& walk) {
    const Task& task = *walk.task();
    if (is_wait(task.kind)) {
      auto slot = ranks_[number].slots.at(walk.notify());
      if (!slot) return false;
      ranks_[number].slots[walk.notify()] = false;
      return true;
    }
    if (is_post(task.kind)) {
      RankState& peer = ranks_[walk.peer(schedule_, number)];
      if (peer.slots.at(walk.notify())) simulated_failure("notify", "slot {} set twice", walk.notify());
      peer.slots[walk.notify()] = true;
      return true;
    }
    const bool remote = hccl::is_transfer(task.kind);
    const Rank peer = remote ? walk.peer(schedule_, number) : number;
    const bool reads = hccl::reads(task.kind);
    move(task, walk, number, reads ? peer : number, remote && !reads ? peer : number);
    return true;
  }

  void move(const Task& task, const QueueWalk& walk, Rank number, Rank from, Rank to) {
    walk.movements(schedule_, number, movements_);
    if (hccl::is_transfer(task.kind) && !movements_.empty()) ++result_.transfers;
    for (const auto& [source, destination] : movements_) move(task, source, destination, number, from, to);
  }

  void move(const Task& task, const ByteRange& source, const ByteRange& destination, Rank number, Rank from, Rank to) {
    const Bytes element = size_of(schedule_.type);
    if (source.length != destination.length || source.offset % element != 0 || destination.offset % element != 0) {
      internal_error("lengths {} and {} of a task differ", source.length, destination.length);
    }
    const Values& read = memory(from, source);
    Values& written = memory(to, destination);
    for (Bytes i = 0; i < source.length / element; ++i) {
      const std::int64_t value = read[source.offset / element + i];
      std::int64_t& target = written[destination.offset / element + i];
      target = hccl::reduces(task.kind) ? combine(schedule_.op, target, value) : value;
    }
    if (hccl::is_transfer(task.kind)) result_.bytes_written[number] += source.length;
  }

  Values& memory(Rank rank, const ByteRange& range) {
    Values& values = ranks_[rank].memory[static_cast<std::size_t>(range.buffer)];
    if ((range.offset + range.length) / size_of(schedule_.type) > values.size()) {
      internal_error("range {}+{} leaves its buffer", range.offset, range.length);
    }
    return values;
  }

  const Schedule& schedule_;
  hccl::Movements movements_;
  std::vector<RankState> ranks_;
  Execution result_;
};

}  // namespace

std::int64_t combine(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::min:
      return std::min(a, b);
  }
  internal_error("unknown operator");
}

Execution execute(const hccl::Schedule& schedule, const std::vector<Values>& input, std::uint64_t seed) {
  return Interpreter(schedule, input).run(seed);
}

}  // namespace hcclsim::test
