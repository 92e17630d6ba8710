#include "hccl/check/symmetric_races.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "hccl/check/interval_map.hpp"
#include "hccl/check/symmetric_accesses.hpp"
#include "hccl/check/task_run.hpp"

namespace hcclsim::hccl {
namespace {

using Time = std::uint32_t;
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr Time start = 1;  // of a rank, on its queue 0

/// Task `time − 2` of a queue of a rank, or its start.
struct Event {
  Rank rank = 0;
  std::uint32_t queue = none;
  Time time = 0;

  [[nodiscard]] TaskId task() const { return {rank, queue, time - 2}; }
  friend bool operator==(const Event&, const Event&) = default;
};

/// Vector clocks of the queues of rank 0: the last event of every queue of every rank, by its distance from rank 0.
class RotatingClocks {
 public:
  RotatingClocks(Rank ranks, std::uint32_t queues, std::uint32_t notifies)
      : ranks_(ranks),
        queues_(queues),
        clocks_(queues, Clock(std::size_t{queues} * ranks, 0)),
        joined_(std::size_t{queues} * ranks, 0),
        posted_(notifies) {
    clocks_[0][0] = start;
  }

  /// What queue `queue` of rank 0 knows of a queue of `rank`.
  [[nodiscard]] Time seen(std::uint32_t queue, Rank rank, std::uint32_t of_queue) const {
    return clocks_[queue][std::size_t{of_queue} * ranks_ + rank];
  }
  /// The same for the end of the rank; valid after leave().
  [[nodiscard]] Time seen_in_the_end(Rank rank, std::uint32_t of_queue) const {
    return joined_[std::size_t{of_queue} * ranks_ + rank];
  }

  void advance(std::uint32_t queue, Time time) { clocks_[queue][std::size_t{queue} * ranks_] = time; }

  /// Queue `queue` of rank 0 posts to the rank `distance` away; so do all others, and rank 0 gets the post of the rank
  /// as far on the other side.
  void post(std::uint32_t queue, std::uint32_t slot, Rank distance) {
    Post& post = posted_[slot];
    if (!spare_.empty()) {
      post.clock = std::move(spare_.back());
      spare_.pop_back();
    }
    post.clock = clocks_[queue];
    post.distance = distance;
  }

  void wait(std::uint32_t queue, std::uint32_t slot) {
    Post& post = posted_[slot];
    for (std::uint32_t of_queue = 0; of_queue < queues_; ++of_queue) {
      // What the poster knows of the rank d away from it, it knows of the rank d − distance away from rank 0.
      Time* const own = clocks_[queue].data() + std::size_t{of_queue} * ranks_;
      const Time* const theirs = post.clock.data() + std::size_t{of_queue} * ranks_;
      take_later(own, theirs + post.distance, ranks_ - post.distance);
      take_later(own + (ranks_ - post.distance), theirs, post.distance);
    }
    spare_.push_back(std::move(post.clock));
  }

  void enter(const ProgramPart* begin, const ProgramPart* end) {
    if (queues_ == 1) return;
    join();
    for (; begin != end; ++begin) clocks_[begin->queue] = joined_;
  }
  void leave() { join(); }

 private:
  using Clock = std::vector<Time>;
  struct Post {
    Clock clock;
    Rank distance = 0;
  };

  static void take_later(Time* own, const Time* theirs, Rank count) {
    for (Rank i = 0; i < count; ++i) own[i] = std::max(own[i], theirs[i]);
  }
  void join() {
    std::fill(joined_.begin(), joined_.end(), 0);
    for (std::uint32_t queue = 0; queue < queues_; ++queue) {
      for (std::size_t i = 0; i < joined_.size(); ++i) joined_[i] = std::max(joined_[i], clocks_[queue][i]);
    }
  }

  Rank ranks_;
  std::uint32_t queues_;
  std::vector<Clock> clocks_;
  Clock joined_;
  std::vector<Post> posted_;  // by slot
  std::vector<Clock> spare_;
};

/// Who touched an interval of the memory of rank 0: the last change and all reads since.
struct History {
  Event written;
  std::vector<Event> reads;
};

/// Observes the lockstep of all ranks; looks at all accesses to the memory of rank 0.
class RotatingRaces {
 public:
  RotatingRaces(const TaskProgram& program, const Rotation& rotation, Findings& matching, Findings& races)
      : program_(program),
        rotation_(rotation),
        matching_(matching),
        races_(races),
        clocks_(program.ranks, program.queues, program.notifies),
        waited_(program.notifies) {
    for (const std::vector<Bytes>& of_buffer : borders_of_accesses(program, rotation)) {
      memories_.emplace_back(of_buffer, History{{0, 0, start}, {}});
    }
  }

  void enter(Rank /*rank*/, const ProgramPart* begin, const ProgramPart* end) { clocks_.enter(begin, end); }

  void leave(Rank /*rank*/) {
    clocks_.leave();
    for (std::uint32_t number = 0; number < buffer_kinds; ++number) check_end(static_cast<Buffer>(number));
  }

  void perform(std::uint32_t queue, std::uint32_t number, const ProgramTask& task) {
    const Time time = number + 2;
    clocks_.advance(queue, time);
    if (task.kind == TaskKind::wait) {
      clocks_.wait(queue, task.value);
      waited_[task.value] = {0, queue, time};
    } else if (task.kind == TaskKind::post) {
      const Event event{rotation_.opposite(task.peer), queue, time};
      const Event& before = waited_[task.value];
      if (before.queue != none && !ordered(before, event)) report_notify(before, event);
      clocks_.post(queue, task.value, task.peer);
    } else {
      visit_accesses(program_, rotation_, task, [&](Rank rank, const ByteRange& piece, bool changes) {
        access({rank, queue, time}, piece, changes);
      });
    }
  }

 private:
  /// `first` happens before `second`, which happens now: clocks are those of the rank of `second`.
  [[nodiscard]] bool ordered(const Event& first, const Event& second) const {
    if (first.rank == second.rank && first.queue == second.queue) return true;
    return clocks_.seen(second.queue, rotation_.distance(second.rank, first.rank), first.queue) >= first.time;
  }

  void access(const Event& event, const ByteRange& range, bool changes) {
    IntervalMap<History>& memory = memories_[static_cast<std::size_t>(range.buffer)];
    const Bytes end = range.offset + range.length;
    for (std::size_t i = memory.cut(range.offset); i < memory.count() && memory.begin(i) < end; ++i) {
      History& history = memory.state(i);
      const ByteRange bytes{range.buffer, memory.begin(i), memory.end(i) - memory.begin(i)};
      check_order(history.written, event, bytes);
      if (changes) {
        for (const Event& read : history.reads) check_order(read, event, bytes);
        history = {event, {}};
      } else {
        add_read(history, event);
      }
    }
  }

  static void add_read(History& history, const Event& event) {
    for (Event& read : history.reads) {
      if (read.rank != event.rank || read.queue != event.queue) continue;
      read = event;
      return;
    }
    history.reads.push_back(event);
  }

  void check_order(const Event& first, const Event& second, const ByteRange& bytes) {
    if (!ordered(first, second)) report_race(first, second, bytes);
  }

  void check_end(Buffer buffer) {
    const IntervalMap<History>& memory = memories_[static_cast<std::size_t>(buffer)];
    for (std::size_t i = 0; i < memory.count(); ++i) {
      const ByteRange bytes{buffer, memory.begin(i), memory.end(i) - memory.begin(i)};
      const auto check = [&](const Event& event) {
        if (clocks_.seen_in_the_end(event.rank, event.queue) < event.time) report_race(event, {}, bytes);
      };
      check(memory.state(i).written);
      for (const Event& read : memory.state(i).reads) check(read);
    }
  }

  void report_notify(const Event& before, const Event& event) {
    if (!matching_.wanted()) return;
    matching_.keep({"notify-overwritten",
                    fmt::format("{} may come before {} has taken the post before it", program_.describe(event.task()),
                                program_.describe(before.task())),
                    {0},
                    {before.task(), event.task()}});
  }

  /// `second` without a queue: the end of rank 0.
  void report_race(const Event& first, const Event& second, const ByteRange& bytes) {
    if (!races_.wanted()) return;
    const std::string where = fmt::format("{} {}+{} of rank 0", name_of(bytes.buffer), bytes.offset, bytes.length);
    Finding finding{"race", {}, {0}, {}, {{0, bytes}}};
    const bool from_start = first.time == start;
    const bool to_end = second.queue == none;
    if (!from_start) finding.tasks.push_back(first.task());
    if (!to_end) finding.tasks.push_back(second.task());
    if (from_start) {
      finding.kind = "before-start";
      finding.message =
          fmt::format("{} touches {}, which may not have arrived yet", program_.describe(second.task()), where);
    } else if (to_end) {
      finding.kind = "after-end";
      finding.message =
          fmt::format("{} touches {}, which may have finished already", program_.describe(first.task()), where);
    } else {
      if (reduces_into(first, bytes) && reduces_into(second, bytes)) finding.kind = "reduction-order";
      finding.message = fmt::format("{} and {} touch {} in no fixed order", program_.describe(first.task()),
                                    program_.describe(second.task()), where);
    }
    races_.keep(std::move(finding));
  }

  /// The task reduces into these bytes of rank 0 and does not read them as its source.
  [[nodiscard]] bool reduces_into(const Event& event, const ByteRange& bytes) const {
    const ProgramTask& task = program_.task(event.task());
    bool found = false;
    visit_accesses(program_, rotation_, task, [&](Rank rank, const ByteRange& piece, bool changes) {
      found = found || (changes && rank == event.rank && piece.buffer == bytes.buffer && piece.offset <= bytes.offset &&
                        bytes.offset < piece.offset + piece.length);
    });
    return found && reduces(task.kind);
  }

  const TaskProgram& program_;
  const Rotation& rotation_;
  Findings& matching_;
  Findings& races_;
  RotatingClocks clocks_;
  std::vector<IntervalMap<History>> memories_;  // by buffer
  std::vector<Event> waited_;                   // last wait for each notify slot
};

}  // namespace

bool races_fit_by_rotation(const Schedule& schedule) {
  constexpr std::uint64_t most_times = std::uint64_t{1} << 27U;
  return std::uint64_t{schedule.queues} * schedule.queues <= most_times / std::max(schedule.ranks, Rank{1});
}

void check_races_by_rotation(const TaskProgram& program, const Rotation& rotation, Findings& matching,
                             Findings& races) {
  RotatingRaces search(program, rotation, matching, races);
  TaskRun<RotatingRaces>(program, search).run();
}

}  // namespace hcclsim::hccl
