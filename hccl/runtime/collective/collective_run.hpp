#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/collective/link_loads.hpp"
#include "hccl/runtime/collective/path_pool.hpp"
#include "hccl/runtime/collective/path_time.hpp"
#include "hccl/runtime/collective/waiting.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/private_links.hpp"
#include "hccl/schedule/walk.hpp"
#include "sim/cluster.hpp"
#include "sim/cpu_hosts.hpp"
#include "sim/event_loop.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/link_utilisation.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// One collective while it happens. Ranks arrive one by one, each from its own call; from then on every queue walks
/// its part of the schedule.
///
/// A queue knows its own date: tasks of known duration (posts, set-ups, local reductions) only move that date forward,
/// and a post reaches its peer with the date at which it was made. Only transfers whose end depends on what else the
/// links carry go through the event loop: two events each, whatever the number of other tasks. Those over private links
/// (private_links.hpp) have a known duration, too. On shared NPUs (shared_npus.hpp) copies and reductions go through
/// the event loop as well.
namespace hcclsim::hccl {

class SharedNpus;

/// Takes what links carry in one training iteration, while it is simulated: bytes as they load the links' capacity.
struct CarriedBytes {
  std::int32_t iteration = 0;
  std::vector<double> of_links{};  ///< by LinkId

  /// A write over a route.
  void add(const sim::TaskId& id, const sim::Route& way, Bytes bytes) {
    if (id.iteration != iteration) return;
    for (const sim::LinkId link : way.links) of_links[link] += static_cast<double>(bytes) * way.write_factor;
  }
};

/// What a simulation gives to its collectives; must outlive them.
struct Machine {
  sim::EventLoop& loop;
  sim::Network& network;
  sim::Cluster& cluster;
  const device::TaskCosts& costs;
  const device::Soc& soc;  ///< of every NPU: copies within it, and what its transfers can reduce
  sim::Trace& trace;
  Seconds exec_timeout = std::numeric_limits<Seconds>::infinity();  ///< longest wait for a notify (HCCL_EXEC_TIMEOUT)
  sim::FlowLog* flows = nullptr;                                    ///< null: nobody asks for them
  const RankOrbits* orbits = nullptr;                               ///< null: every rank is simulated
  /// Of the links, if it is known beforehand what all streams do and capacities stay what they are; null: none.
  const PrivateLinks* private_links = nullptr;
  sim::CpuHosts* cpus = nullptr;    ///< between which and NPUs bytes are copied; null: the platform has none
  std::string_view job{};           ///< of several on one clock: its name, for messages
  CarriedBytes* carried = nullptr;  ///< null: nobody asks for it
  bool moves_all = true;  ///< the network moves what goes over private links, too: with events, like all others
  const sim::FaultPlan* faults = nullptr;  ///< null: nothing goes wrong
  /// NPUs whose HBM and AI cores are shared; then `network` is theirs, no links are private, and nothing goes wrong.
  /// Null: they are not.
  SharedNpus* shared = nullptr;
};

/// The tasks of a rank as its host issues them: number k of them, counted from 0 in the order of the walk, does not
/// begin before `begin` + (k + 1) · `task`.
struct Pace {
  Seconds begin = 0;
  Seconds task = 0;  ///< 0: all are there
};

/// Order of a rank's events at one date: by stream, within a stream by the queues of its collective.
[[nodiscard]] constexpr sim::EventOrder event_order(Rank rank, std::uint32_t stream, std::uint32_t queue = 0) {
  constexpr std::uint32_t queues_per_stream = 4096;
  return {rank, stream * queues_per_stream + queue};
}

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
  struct Queue {
    QueueWalk walk;
    Seconds date = 0;                    // where the queue stands in time
    PathPool::Id path = PathPool::none;  // that led there
    Seconds task_start = 0;              // of the transfer, copy or reduction under way, for the trace
    Seconds first_byte = 0;              // of it, behind set-up and latency
    const sim::Route* route = nullptr;   // of the last transfer: rounds mostly use the same
    BytesPerSecond rate = 0;             // of it, if its links are private
    sim::LinkId slowest = 0;             // of its links
    BytesPerSecond capacity = 0;         // of its slowest link
    Bytes bytes = 0;                     // of what is under way
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
  /// Adds the transfer that has just ended to the path of its queue.
  void add_to_path(Queue& queue);
  /// The link that limits a transfer over private links: the slowest one.
  [[nodiscard]] sim::LinkId slowest_of(const sim::Route& route) const;
  /// What a link can carry during the transfer of a queue that has just ended, faults of the link included.
  [[nodiscard]] BytesPerSecond capacity_during(const Queue& queue, sim::LinkId link) const;
  /// How long a link needs for all that it has carried so far, at the capacity that it has during that transfer.
  [[nodiscard]] Seconds load_during(const Queue& queue, sim::LinkId link) const;
  /// Whether transfers over the link come one after the other.
  [[nodiscard]] bool is_private(sim::LinkId link) const;
  /// The link that limits a transfer over links that are not private: the one that has carried most so far.
  [[nodiscard]] sim::LinkId busiest_of(const Queue& queue) const;
  /// Whether a link limits the path of the queue more than the one that is named so far.
  [[nodiscard]] bool limits_more(const Queue& queue, sim::LinkId link, sim::LinkId named) const;
  /// Whether two links limit alike, so that either may be named.
  [[nodiscard]] bool limits_as_much(sim::LinkId link, sim::LinkId other) const;
  /// Names the first link of the platform file of those that limit as much as the ones of the path: the same whichever
  /// of several equal paths was followed, and whichever ranks stand for others.
  void name_first_links(PathTime& path) const;
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
