#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/collective/link_limits.hpp"
#include "hccl/runtime/collective/link_loads.hpp"
#include "hccl/runtime/collective/path_pool.hpp"
#include "hccl/runtime/collective/path_time.hpp"
#include "hccl/runtime/collective/waiting.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/machine.hpp"
#include "hccl/schedule/walk.hpp"

/// One collective while it happens. Ranks arrive one by one, each from its own call; from then on every queue walks
/// its part of the schedule.
///
/// A queue knows its own date: tasks of known duration (posts, set-ups, local reductions) only move that date forward,
/// and a post reaches its peer with the date at which it was made. Only transfers whose end depends on what else the
/// links carry go through the event loop: two events each, whatever the number of other tasks. Those over private links
/// (private_links.hpp) have a known duration, too. On shared NPUs (shared_npus.hpp) copies and reductions go through
/// the event loop as well.
namespace hcclsim::hccl {

/// Figures of a finished collective.
struct CollectiveStats {
  Rank first_rank = 0;  ///< world rank of the first of its ranks
  sim::TaskId id{};     ///< under which that rank called it
  Bytes payload = 0;
  Seconds last_arrival = 0;
  Seconds last_end = 0;
  PathTime path{};              ///< that leads to the end of the last rank
  std::uint64_t transfers = 0;  ///< between NPUs, those without bytes not counted
  std::uint64_t groups = 1;     ///< of which this one was simulated in place of all
  double on_links = 0;          ///< bytes that all links have carried, as they load their capacity
};

class CollectiveRun final : public sim::EventHandler {
 public:
  static constexpr std::uint64_t overdue_tag = ~std::uint64_t{0};

  /// Called when a rank has finished; `caller` is what it passed to arrive(), `date` may lie ahead of the clock.
  using Done = std::function<void(const CollectiveRun& run, std::uint32_t caller, Seconds date)>;

  /// `name` is a number of the trace's names. Members are named by their places in `seats`. `overdue` is called
  /// with `overdue_tag` when a member may have waited for a notify for Machine::exec_timeout, or longer.
  CollectiveRun(const Machine& machine, const Communicator& communicator, const Seats& seats,
                std::shared_ptr<const Schedule> schedule, std::uint32_t name, std::uint64_t sequence, Done done,
                sim::EventHandler& overdue);

  /// The member takes part from `date` on; its spans go to `stream` under `id`.
  void arrive(Rank place, Seconds date, std::uint32_t caller, std::uint32_t stream, const sim::TaskId& id,
              const Pace& pace = {});

  [[nodiscard]] const Schedule& schedule() const { return *schedule_; }
  [[nodiscard]] bool finished() const { return finished_ == members_.size(); }
  /// It is working at the moment, that is, below in the stack of calls.
  [[nodiscard]] bool busy() const { return draining_; }
  [[nodiscard]] CollectiveStats stats() const;
  /// Adds what the links have carried, if it is of the iteration that is asked for.
  void add_to(CarriedBytes& carried) const;
  /// What a member that has not finished waits for, for people.
  [[nodiscard]] std::string waiting_for(Rank place) const;
  /// Where the queues of a member that has arrived and not finished stand; a queue several times if one of several
  /// ranks may be the one that it waits for.
  [[nodiscard]] std::vector<Waiting> waiting(Rank place) const;
  /// When a member has arrived; none if it has not.
  [[nodiscard]] std::optional<Seconds> arrival(Rank place) const;
  [[nodiscard]] std::uint32_t caller(Rank place) const { return members_[place].caller; }

  void on_event(std::uint64_t tag) override;  // a transfer has ended; on shared NPUs a copy or reduction, too

 private:
  struct Queue : LinkTransfer {  // the last one: rounds mostly use the same route
    QueueWalk walk;
    Seconds date = 0;                    // where the queue stands in time
    PathPool::Id path = PathPool::none;  // that led there
    Seconds task_start = 0;              // of the transfer, copy or reduction under way, for the trace
    std::uint64_t number = 0;            // of its task, in the order in which the host issues the rank's tasks
    bool active = false;
  };
  struct Member {
    Rank rank = 0;  // of the communicator
    std::uint32_t stage = 0;
    std::uint32_t running = 0;  // queues that have not ended their part of the stage
    std::uint32_t caller = 0;
    std::uint32_t stream = 0;
    sim::TaskId id{};
    Pace pace{};
    Seconds arrival = 0;
    std::uint64_t issued = 0;  // tasks of the stages so far
    bool arrived = false;
    bool traced = false;
  };
  /// A notify slot: the date at which it was set, by whom and as which post, and the queue that waits for it.
  struct Slot {
    Seconds date = unset;
    Seconds posted = unset;              // it left then; with faults it may come later
    PathPool::Id path = PathPool::none;  // that led to the post
    std::int32_t waiter = -1;
    Rank poster = 0;  // of the communicator
    std::uint32_t post = 0;
  };
  static constexpr Seconds unset = -1;

  /// How many ranks each member stands for.
  [[nodiscard]] std::uint64_t copies() const { return schedule_->ranks / members_.size(); }
  /// Takes over the path from its holder.
  void start_stage(Rank place, Seconds date, PathPool::Id path);
  void end_queue(Rank place);
  /// Waits until the host has issued the task of the queue.
  void wait_for_issue(const Member& member, Queue& queue);
  /// Goes on with a queue until it waits, starts a transfer or ends.
  void advance(Rank place, std::uint32_t number);
  /// Goes on with all queues that were woken.
  void drain();
  [[nodiscard]] bool try_wait(Rank place, std::uint32_t number);
  /// False if its NPU is lost before the notify is sent.
  [[nodiscard]] bool post(Rank place, std::uint32_t number);
  /// When the member's NPU is done with a task of this duration that begins at `date`; never if it is lost before.
  [[nodiscard]] Seconds later(Rank place, Seconds date, Seconds duration) const {
    return machine_.faults == nullptr ? date + duration : machine_.faults->end_of_task(npu_of(place), date, duration);
  }
  /// Where the current task of a queue stands, if it does not go on by itself.
  [[nodiscard]] Waiting waiting_at(Rank place, const Queue& queue) const;
  /// The same with the rank of the communicator that sets the notify.
  [[nodiscard]] Waiting for_notify_of(Rank poster, Rank place, Waiting waiting) const;
  [[nodiscard]] std::vector<Rank> posters_of(Rank place, std::uint32_t slot) const;
  /// True if the transfer has ended at the queue's new date, false if an event will end it.
  [[nodiscard]] bool start_transfer(Rank place, std::uint32_t number);
  /// What an event of a queue ends.
  enum class Ending : std::uint8_t { transfer, copy, reduction };
  [[nodiscard]] std::uint64_t tag_of(Rank place, std::uint32_t number, Ending what) const {
    return std::uint64_t{index_of(place, number)} << 2 | static_cast<std::uint64_t>(what);
  }
  /// The transfer has ended at the queue's date. All of these are true if the task has, too, at the new one, and false
  /// if an event will end it.
  [[nodiscard]] bool end_transfer(Rank place, std::uint32_t number);
  void log_flow(const Member& member, const Queue& queue) const;
  [[nodiscard]] bool reduce_or_copy(Rank place, std::uint32_t number);
  [[nodiscard]] bool copy(Rank place, std::uint32_t number);
  void end_copy(Rank place, std::uint32_t number);
  [[nodiscard]] bool reduce_by_core(Rank place, std::uint32_t number);
  void end_reduction(Rank place, std::uint32_t number);
  /// Whether the reduction of a transfer is left to an AI core.
  [[nodiscard]] bool leaves_reduction(const Queue& queue) const;
  [[nodiscard]] sim::EventOrder order_of(Rank place, std::uint32_t number) const {
    return event_order(npu_of(place), members_[place].stream, number);
  }
  /// The NPU that does the member's part.
  [[nodiscard]] Rank npu_of(Rank place) const { return communicator_.ranks[members_[place].rank]; }
  /// That whose AI cores do the reduction of a queue's task.
  [[nodiscard]] Rank reducer_of(Rank place, const Queue& queue) const {
    return queue.walk.task()->kind == TaskKind::reduce ? npu_of(place) : queue.route->destination;
  }
  void record(Rank place, std::uint32_t queue, sim::Span span);
  /// Number of a post for the trace, unique among the collectives of the communicator.
  [[nodiscard]] std::uint64_t flow_of(std::uint32_t post) const { return (sequence_ << 32) + post; }
  /// For messages.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::size_t index_of(Rank place, std::uint32_t queue) const {
    return std::size_t{place} * schedule_->queues + queue;
  }
  [[nodiscard]] Queue& queue_of(Rank place, std::uint32_t queue) { return queues_[index_of(place, queue)]; }

  const Machine& machine_;
  const Communicator& communicator_;
  const Seats& seats_;
  std::shared_ptr<const Schedule> schedule_;
  std::uint32_t name_;
  std::uint64_t sequence_;
  Done done_;
  sim::EventHandler& overdue_;
  std::vector<Member> members_;  // by place, like all that follows
  std::uint32_t stages_;         // of all windows
  std::vector<Queue> queues_;
  std::vector<Slot> slots_;
  PathPool paths_;
  struct Woken {
    Rank place;
    std::uint32_t queue;
  };
  std::vector<Woken> woken_;
  bool draining_ = false;
  LinkLoads loads_;
  LinkLimits limits_;
  std::array<bool, 2> reduces_on_the_way_{};  // by sim::Transport: transfers can do the reduction of the schedule
  std::uint32_t posts_ = 0;
  std::uint64_t transfers_ = 0;
  Rank finished_ = 0;
  Rank arrived_ = 0;
  Seconds last_arrival_ = 0;
  Seconds last_end_ = 0;
  PathTime path_;        // to the last end
  Rank last_place_ = 0;  // that has it
};

}  // namespace hcclsim::hccl
