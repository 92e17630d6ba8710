#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "hccl/check/access_history.hpp"
#include "hccl/check/program/task_run.hpp"
#include "hccl/check/symmetry/symmetric_accesses.hpp"
#include "hccl/check/symmetry/symmetric_checks.hpp"

namespace hcclsim::hccl {
namespace {

using Time = std::uint32_t;
constexpr std::uint32_t no_queue = std::numeric_limits<std::uint32_t>::max();
constexpr Time start = 1;  // of a rank, on its queue 0

/// Task `time − 2` of a queue of a rank, or its start.
struct RotatingEvent {
  Rank rank = 0;
  std::uint32_t queue = no_queue;
  Time time = 0;

  [[nodiscard]] bool exists() const { return queue != no_queue; }
  [[nodiscard]] bool same_queue(const RotatingEvent& other) const { return rank == other.rank && queue == other.queue; }
  /// Nothing for the start and the end of a rank.
  [[nodiscard]] std::optional<TaskId> task() const {
    if (!exists() || time == start) return {};
    return TaskId{rank, queue, time - 2};
  }
  friend bool operator==(const RotatingEvent&, const RotatingEvent&) = default;
};

/// Vector clocks of the chains of the first ranks: the last event of every queue of every rank.
class RotatingClocks {
 public:
  explicit RotatingClocks(const TaskProgram& program)
      : program_(program),
        ranks_(program.ranks),
        queues_(program.queues),
        clocks_(program.chains(), Clock(std::size_t{queues_} * ranks_, 0)),
        joined_(std::size_t{queues_} * ranks_, 0),
        posted_(std::size_t{program.period} * program.notifies) {
    for (Rank rank = 0; rank < program.period; ++rank) clocks_[program.chain(rank, 0)][rank] = start;
  }

  /// What a chain knows of a queue of `rank`.
  [[nodiscard]] Time seen(std::uint32_t chain, Rank rank, std::uint32_t of_queue) const {
    return clocks_[chain][std::size_t{of_queue} * ranks_ + rank];
  }
  /// The same for the end of the rank that has left last.
  [[nodiscard]] Time seen_in_the_end(Rank rank, std::uint32_t of_queue) const {
    return joined_[std::size_t{of_queue} * ranks_ + rank];
  }

  void advance(std::uint32_t chain, Time time) {
    clocks_[chain][std::size_t{chain % queues_} * ranks_ + program_.rank_of(chain)] = time;
  }

  /// The chain posts to a slot on a rank that is an image of the slot's owner, `distance` ranks away from it. All
  /// images of the chain do the same, so the owner gets the post of the image at the same distance on the other side.
  void post(std::uint32_t chain, std::size_t slot, Rank distance) {
    Post& post = posted_[slot];
    if (!spare_.empty()) {
      post.clock = std::move(spare_.back());
      spare_.pop_back();
    }
    post.clock = clocks_[chain];
    post.distance = distance;
  }

  void wait(std::uint32_t chain, std::size_t slot) {
    Post& post = posted_[slot];
    for (std::uint32_t of_queue = 0; of_queue < queues_; ++of_queue) {
      // What the chain knows of rank d, the image of it that has posted knows of rank d − distance.
      Time* const own = clocks_[chain].data() + std::size_t{of_queue} * ranks_;
      const Time* const theirs = post.clock.data() + std::size_t{of_queue} * ranks_;
      take_later(own, theirs + post.distance, ranks_ - post.distance);
      take_later(own + (ranks_ - post.distance), theirs, post.distance);
    }
    spare_.push_back(std::move(post.clock));
  }

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) {
    if (queues_ == 1) return;
    join(rank);
    for (; begin != end; ++begin) clocks_[program_.chain(rank, begin->queue)] = joined_;
  }
  void leave(Rank rank) { join(rank); }

 private:
  using Clock = std::vector<Time>;
  struct Post {
    Clock clock;
    Rank distance = 0;
  };

  static void take_later(Time* own, const Time* theirs, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) own[i] = std::max(own[i], theirs[i]);
  }
  void join(Rank rank) {
    joined_ = clocks_[program_.chain(rank, 0)];
    for (std::uint32_t queue = 1; queue < queues_; ++queue) {
      take_later(joined_.data(), clocks_[program_.chain(rank, queue)].data(), joined_.size());
    }
  }

  const TaskProgram& program_;
  Rank ranks_;
  std::uint32_t queues_;
  std::vector<Clock> clocks_;
  Clock joined_;
  std::vector<Post> posted_;  // by slot
  std::vector<Clock> spare_;
};

/// Observes the lockstep of all ranks; looks at all accesses to the memory of the first ranks.
class RotatingRaces : AccessHistory<RotatingRaces, RotatingEvent> {
 public:
  RotatingRaces(const TaskProgram& program, const Rotation& rotation, Findings& matching, Findings& races)
      : AccessHistory(borders_of_accesses(program, rotation),
                      [](Rank rank) {
                        return RotatingEvent{rank, 0, start};
                      }),
        program_(program),
        rotation_(rotation),
        matching_(matching),
        races_(races),
        clocks_(program),
        waited_(std::size_t{program.period} * program.notifies) {}

  /// Some reductions that need no order have none.
  [[nodiscard]] bool order_is_free() const { return order_is_free_; }

  void enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) { clocks_.enter(rank, begin, end); }

  void leave(Rank rank) {
    clocks_.leave(rank);
    end(rank);
  }

  void perform(std::uint32_t chain, std::uint32_t number, const ProgramTask& task) {
    const Time time = number + 2;
    const TaskId id = program_.task_id(chain, number);
    clocks_.advance(chain, time);
    if (is_wait(task.kind)) {
      const std::size_t slot = std::size_t{id.rank} * program_.notifies + task.value;
      const RotatingEvent event{id.rank, id.queue, time};
      const RotatingEvent& before = waited_[slot];
      if (before.exists() && !ordered(before, event) && matching_.wanted()) {
        matching_.keep(two_waiters_finding(program_, *before.task(), id));
      }
      clocks_.wait(chain, slot);
      waited_[slot] = event;
    } else if (is_post(task.kind)) {
      const Rank owner = rotation_.representative(task.peer);
      const std::size_t slot = std::size_t{owner} * program_.notifies + task.value;
      const Rank turns = rotation_.turn_of(task.peer);
      const RotatingEvent event{rotation_.image(id.rank, rotation_.back(turns)), id.queue, time};
      const RotatingEvent& before = waited_[slot];
      if (before.exists() && !ordered(before, event) && matching_.wanted()) {
        matching_.keep(notify_finding(program_, *before.task(), *event.task(), owner));
      }
      clocks_.post(chain, slot, turns * rotation_.period());
    } else {
      visit_accesses(program_, rotation_, id.rank, task,
                     [&](Rank rank, Rank owner, const ByteRange& piece, bool changes) {
                       access({rank, id.queue, time}, owner, piece,
                              changes ? access_to_change(task.kind, program_.type) : Access::read);
                     });
    }
  }

 private:
  friend AccessHistory;

  /// `first` happens before `second`, which happens now: the clock is that of the representative, turned back as far.
  [[nodiscard]] bool ordered(const RotatingEvent& first, const RotatingEvent& second) const {
    if (first.same_queue(second)) return true;
    const std::uint32_t chain = program_.chain(rotation_.representative(second.rank), second.queue);
    const Rank rank = rotation_.image(first.rank, rotation_.back(rotation_.turn_of(second.rank)));
    return clocks_.seen(chain, rank, first.queue) >= first.time;
  }

  [[nodiscard]] bool before_end(const RotatingEvent& event) const {
    return clocks_.seen_in_the_end(event.rank, event.queue) >= event.time;
  }
  void suspect_free(const RotatingEvent& /*first*/, const RotatingEvent& /*second*/) { order_is_free_ = true; }
  void suspect(const RotatingEvent& first, const RotatingEvent& second, const RankBytes& bytes) {
    if (!races_.wanted()) return;
    const bool both_reduce = first.task() && second.task() && reduces_into(first, bytes) && reduces_into(second, bytes);
    races_.keep(race_finding(program_, first.task(), second.task(), bytes, both_reduce));
  }

  /// The task reduces into these bytes and does not read them as its source.
  [[nodiscard]] bool reduces_into(const RotatingEvent& event, const RankBytes& bytes) const {
    const ProgramTask& task = program_.task(*event.task());
    const Bytes at = bytes.range.offset;
    bool found = false;
    visit_accesses(program_, rotation_, rotation_.representative(event.rank), task,
                   [&](Rank rank, Rank owner, const ByteRange& piece, bool changes) {
                     found = found || (changes && rank == event.rank && owner == bytes.rank &&
                                       piece.buffer == bytes.range.buffer && piece.offset <= at &&
                                       at < piece.offset + piece.length);
                   });
    return found && reduces(task.kind);
  }

  const TaskProgram& program_;
  const Rotation& rotation_;
  Findings& matching_;
  Findings& races_;
  RotatingClocks clocks_;
  std::vector<RotatingEvent> waited_;  // last wait for each notify slot
  bool order_is_free_ = false;
};

}  // namespace

bool races_fit_by_rotation(const Schedule& schedule, const Rotation& rotation) {
  constexpr std::uint64_t most_times = std::uint64_t{1} << 27U;
  return std::uint64_t{schedule.queues} * schedule.queues <= most_times / schedule.ranks / rotation.period();
}

bool check_races_by_rotation(const TaskProgram& program, const Rotation& rotation, Findings& matching,
                             Findings& races) {
  RotatingRaces search(program, rotation, matching, races);
  TaskRun<RotatingRaces>(program, search).run();
  return search.order_is_free();
}

}  // namespace hcclsim::hccl
