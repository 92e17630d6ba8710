#include "hccl/schedule/byte_ranges.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "hccl/schedule/validate.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

/// Tasks whose byte ranges are computed.
constexpr std::uint64_t most_tasks_walked = std::uint64_t{1} << 19U;

class ByteRangeCheck {
 public:
  explicit ByteRangeCheck(const Schedule& schedule) : schedule_(schedule) {}

  /// Byte ranges and peers of single tasks, rank by rank as far as the number of tasks allows. Ranks are taken in the
  /// order 0, last, and then evenly spaced ever more closely.
  void run() {
    std::uint64_t tasks_left = most_tasks_walked;
    const Rank last = schedule_.ranks - 1;
    if (!check_rank(0, tasks_left) || (last > 0 && !check_rank(last, tasks_left))) return;
    for (Rank step = std::bit_floor(std::max<Rank>(last, 1)); step > 0; step /= 2) {
      for (Rank rank = step; rank < last; rank += 2 * step) {
        if (!check_rank(rank, tasks_left)) return;
      }
    }
  }

 private:
  /// False if the tasks left did not suffice.
  bool check_rank(Rank rank, std::uint64_t& tasks_left) {
    QueueWalk walk;
    for (std::uint32_t stage = 0; stage < schedule_.stage_count(); ++stage) {
      for (std::uint32_t queue = 0; queue < schedule_.queues; ++queue) {
        if (tasks_left-- == 0) return false;
        for (walk.enter(schedule_, stage, rank, queue); walk.task() != nullptr; walk.next()) {
          if (tasks_left-- == 0) return false;
          check_bytes(walk, stage, rank);
        }
      }
    }
    return true;
  }

  void check_bytes(const QueueWalk& walk, std::uint32_t stage, Rank rank) {
    const Task& task = *walk.task();
    if (is_notify(task.kind)) return;
    const Rank from = reads(task.kind) ? walk.peer(schedule_, rank) : rank;
    const Rank to = walk.destination_viewer(schedule_, rank).owner;
    if (is_transfer(task.kind) && from == to && walk.bytes(schedule_, rank) > 0) {
      fail_at(walk, stage, rank, "peer", "the rank is its own peer");
    }
    walk.movements(schedule_, rank, movements_);
    for (const Movement& movement : movements_) check_movement(movement, walk, stage, rank, from, to);
  }

  void check_movement(const Movement& movement, const QueueWalk& walk, std::uint32_t stage, Rank rank, Rank from,
                      Rank to) {
    const auto& [source, destination] = movement;
    if (destination.buffer == Buffer::input) {
      fail_at(walk, stage, rank, "destination", "an input is written");
    }
    check_bounds("source", source, walk, stage, rank, from);
    check_bounds("destination", destination, walk, stage, rank, to);
    if (source.length != destination.length) {
      fail_at(walk, stage, rank, "destination", "{} bytes into a range of {}", source.length, destination.length);
    }
    if (from == to && source.buffer == destination.buffer && source.offset < destination.offset + destination.length &&
        destination.offset < source.offset + source.length) {
      fail_at(walk, stage, rank, "destination", "source {}+{} and destination {}+{} overlap", source.offset,
              source.length, destination.offset, destination.length);
    }
  }

  void check_bounds(const std::string& field, const ByteRange& range, const QueueWalk& walk, std::uint32_t stage,
                    Rank rank, Rank owner) {
    const Bytes size = schedule_.size(range.buffer, owner);
    if (range.length > size || range.offset > size - range.length) {
      fail_at(walk, stage, rank, field, "bytes {}+{} leave the {} memory of {} bytes", range.offset, range.length,
              name_of(range.buffer), size);
    }
    const Bytes element = size_of(schedule_.type);
    if (range.offset % element != 0 || range.length % element != 0) {
      fail_at(walk, stage, rank, field, "bytes {}+{} cut an element of {} bytes in two", range.offset, range.length,
              element);
    }
  }

  template <typename... Args>
  [[noreturn]] void fail_at(const QueueWalk& walk, std::uint32_t stage, Rank rank, const std::string& field,
                            fmt::format_string<Args...> format, Args&&... args) {
    FieldPlace place = place_of(*walk.task(), stage % schedule_.stages.size());
    place.push_back({field});
    throw ScheduleError(std::move(place),
                        fmt::format("rank {}, queue {}, round {}: {}", rank, walk.place().queue, walk.place().round,
                                    fmt::format(format, std::forward<Args>(args)...)));
  }

  [[nodiscard]] FieldPlace place_of(const Task& task, std::size_t number) const {
    const std::vector<Strand>& strands = schedule_.stages[number].strands;
    for (std::size_t s = 0; s < strands.size(); ++s) {
      for (std::size_t l = 0; l < strands[s].loops.size(); ++l) {
        const std::vector<Task>& tasks = strands[s].loops[l].tasks;
        for (std::size_t t = 0; t < tasks.size(); ++t) {
          if (&tasks[t] != &task) continue;
          return {step("stage", number), step("strand", s), step("loop", l), step("task", t)};
        }
      }
    }
    const TaskLists& lists = schedule_.stages[number].lists;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      for (std::size_t t = 0; t < lists[i].tasks.size(); ++t) {
        if (&lists[i].tasks[t] == &task) return {step("stage", number), step("list", i), step("task", t)};
      }
    }
    return {};
  }

  static FieldStep step(const char* field, std::size_t index) { return {field, static_cast<int>(index)}; }

  const Schedule& schedule_;
  Movements movements_;
};

}  // namespace

void check_byte_ranges(const Schedule& schedule) { ByteRangeCheck(schedule).run(); }

}  // namespace hcclsim::hccl
