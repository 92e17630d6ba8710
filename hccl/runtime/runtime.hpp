#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "device/kernel_cost.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/collective/collective_run.hpp"
#include "hccl/runtime/fifo.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/event_loop.hpp"
#include "sim/trace.hpp"

/// The runtime of the simulated NPUs, as programs on a device see it: in-order streams that take kernels, event records
/// and waits, host functions and collectives, at any date, also from callbacks while the simulation runs. A collective
/// forms from the calls of its ranks, in the order in which each rank issues them per communicator; a message from its
/// send and its receive, in the order in which either side issues them per tag.
///
/// A stream knows its own date, like the queues of a collective: kernels only move it forward. So a stream runs ahead
/// of the simulated clock until it has to wait for something whose date is not known yet. On NPUs that are shared
/// (shared_npus.hpp) kernels are such things, too: they come to the AI cores at the simulated date, and an event ends
/// them.
namespace hcclsim::hccl {

struct StreamId {
  std::uint32_t index = 0;
};
struct EventId {
  std::uint32_t index = 0;
};
struct CommunicatorId {
  std::uint32_t index = 0;
};

/// The kernels of a program.
struct KernelTable {
  std::vector<Seconds> durations;             ///< without idles
  std::vector<std::uint32_t> names;           ///< in the trace
  std::vector<device::MemoryDemand> demands;  ///< on an NPU whose HBM is shared; empty: it is not
  std::vector<Seconds> idles{};               ///< in which the stream does nothing before each kernel; empty: none

  [[nodiscard]] Seconds idle(std::uint32_t kernel) const { return idles.empty() ? 0 : idles[kernel]; }
};

/// Some of them as they follow each other in a stream. The table must outlive their execution.
struct KernelRun {
  const KernelTable* table = nullptr;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  double factor = 1;  ///< on the durations
  Pace pace{};        ///< at which the host issues them

  /// When the host has issued a kernel, counted from the first of these.
  [[nodiscard]] Seconds issued(std::uint32_t kernel) const {
    return pace.task > 0 ? pace.begin + (kernel + 1) * pace.task : 0;
  }
};

class Runtime final : private sim::EventHandler {
 public:
  explicit Runtime(const Machine& machine);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// A new stream of a rank; its streams are numbered from 0. Throws Error(bad_input, "stream") if there is no such
  /// rank.
  StreamId create_stream(Rank rank);
  /// An event: a wait refers to the latest record that was enqueued before it, whatever was recorded since, and passes
  /// at once if there is none.
  EventId create_event();
  /// Throws Error(bad_input, "communicator") if the cluster lacks one of its NPUs or one takes part twice.
  CommunicatorId create_communicator(Communicator communicator);
  /// Of a group of which some members stand for others. Its calls come from the NPUs of the seats.
  CommunicatorId create_communicator(Communicator communicator, Seats seats);

  // All of these enqueue a task at the simulated date and return. Names are numbers of the trace's names.
  /// A kernel of fixed duration.
  void launch(StreamId stream, Seconds duration, std::uint32_t name, const sim::TaskId& id = {});
  /// Kernels that follow each other without a gap; the first of them has the part of `id`.
  void launch(StreamId stream, const KernelRun& block, const sim::TaskId& id = {});
  /// Work of the host on what is on the device, of fixed duration: it stands still with its NPU.
  void host_work(StreamId stream, Seconds duration, std::uint32_t name, const sim::TaskId& id = {});
  /// Work of the host alone, which goes on while its NPU stands still; it begins when an NPU that is late does.
  void host_work_alone(StreamId stream, Seconds duration, std::uint32_t name, const sim::TaskId& id = {});
  /// Moves bytes from the memory of the server's CPU to that of the NPU, over the links that the platform has between
  /// them. If the server has no CPU in the platform, nothing else is on the way, which is as fast as that of the SoC's
  /// server (sim/platform/catalog.hpp).
  void copy_from_host(StreamId stream, Bytes bytes, std::uint32_t name, const sim::TaskId& id = {});
  /// The other way.
  void copy_to_host(StreamId stream, Bytes bytes, std::uint32_t name, const sim::TaskId& id = {});
  /// Idles until the duration is over; not shown in the trace.
  void delay(StreamId stream, Seconds duration);
  void record(StreamId stream, EventId event);
  void wait(StreamId stream, EventId event);
  /// Idles until a date; not shown in the trace.
  void wait_until(StreamId stream, Seconds date);
  /// The stream's rank takes part in the next collective that it has not yet called on the communicator. All ranks must
  /// call with schedules of the same shape; throws Error(bad_input, "collective") otherwise.
  void collective(StreamId stream, CommunicatorId communicator, std::shared_ptr<const Schedule> schedule,
                  std::uint32_t name, const sim::TaskId& id = {}, const Pace& pace = {});
  /// The stream's rank sends to, or receives from, another rank: the n-th send of a source to a destination under a tag
  /// meets the n-th receive. Both wait for each other. The schedule is that of a message between two ranks, from the
  /// first to the second (Collective::send_recv); that of both ends must be the same, as for a collective. Throws
  /// Error(bad_input, "stream") if there is no such rank or it is the stream's own.
  void send(StreamId stream, Rank destination, std::uint32_t tag, std::shared_ptr<const Schedule> schedule,
            std::uint32_t name, const sim::TaskId& id = {}, const Pace& pace = {});
  void receive(StreamId stream, Rank source, std::uint32_t tag, std::shared_ptr<const Schedule> schedule,
               std::uint32_t name, const sim::TaskId& id = {}, const Pace& pace = {});
  /// Calls the function when everything before it in the stream has ended; the stream waits for it to return.
  void host_function(StreamId stream, std::function<void()> function);
  /// The same, but the stream waits from then on until release() is called, once, which may be within the function.
  void hold(StreamId stream, std::function<void()> function);
  void release(StreamId stream);

  [[nodiscard]] const Machine& machine() const { return machine_; }

  /// Simulated date of what is happening. Streams that nobody waits for run ahead of it, also when run() returns: a
  /// host function sees the date at which its stream has come to it.
  [[nodiscard]] Seconds now() const { return machine_.loop.now(); }

  /// Simulates until nothing is left to do; throws as require_finished() does.
  void run();
  /// When nothing is left to do: throws Error(simulated_failure, "deadlock") that names the streams which could not
  /// finish, or Error(simulated_failure, "timeout") if a fault keeps them from it and an NPU has waited for a notify
  /// for Machine::exec_timeout. A wait that ends too late throws that at its date.
  void require_finished() const;
  /// Whether a fault holds something that has begun for good: whatever happens beside it, the streams will not finish.
  [[nodiscard]] bool stands_still() const;

  /// Statistics of the collectives that have ended, in the order of their ends.
  [[nodiscard]] const std::vector<CollectiveStats>& collectives() const { return finished_; }
  /// Drops those so far, so that a long simulation takes no more memory than a short one.
  void forget_collectives() { finished_.clear(); }

 private:
  friend class Diagnosis;

  enum class Kind : std::uint8_t {
    kernel,
    block,
    work,
    work_alone,
    copy,
    delay,
    until,
    record,
    wait,
    collective,
    host,
    hold
  };
  struct Copy {
    Bytes bytes = 0;
    bool to_host = false;
  };
  struct Task {
    Kind kind = Kind::kernel;
    std::uint32_t index = 0;  // block, copy, event, collective call or host function
    std::uint32_t name = 0;
    std::uint32_t generation = 0;  // record or wait: which record of the event, counted from 1
    sim::TaskId id{};
    Seconds duration = 0;  // until: a date
  };
  struct Stream {
    Rank rank = 0;
    std::uint32_t number = 0;
    Seconds date = 0;
    Seconds blocked_since = 0;
    bool blocked = false;      // its first task has begun and waits for something
    bool lost = false;         // … and its NPU is lost
    std::uint32_t kernel = 0;  // of its first task, a block on shared NPUs: so many have ended
    Fifo<Task> tasks;
  };
  /// The records of an event that a wait may still ask for: those from number `forgotten` + 1 on.
  struct Event {
    std::uint32_t forgotten = 0;
    std::vector<Seconds> dates;          // not_reached at first
    std::uint32_t pending = 0;           // waits that are enqueued and have not passed
    std::vector<std::uint32_t> waiting;  // streams

    [[nodiscard]] std::uint32_t records() const { return forgotten + static_cast<std::uint32_t>(dates.size()); }
    [[nodiscard]] Seconds& date(std::uint32_t record) { return dates[record - forgotten - 1]; }
  };
  struct Call {
    std::uint32_t communicator = 0;
    Rank place = 0;  // in its seats
    std::uint64_t sequence = 0;
    std::shared_ptr<const Schedule> schedule;
    Pace pace{};
  };
  struct CommunicatorState {
    Communicator communicator;
    Seats seats;
    std::vector<std::pair<Rank, Rank>> places;        // NPU and its place in the seats, ascending
    std::vector<std::uint64_t> calls;                 // of each seat, so far
    std::deque<std::unique_ptr<CollectiveRun>> runs;  // from sequence number `first` on
    std::uint64_t first = 0;
  };

  void enqueue(StreamId id, const Task& task);
  void wake(std::uint32_t index, Seconds date);
  void drain();
  /// Runs a stream ahead until it is blocked or empty.
  void advance(std::uint32_t index);
  /// Begins the stream's first task; true if it has ended at the stream's new date.
  bool perform(std::uint32_t index, const Task& task);
  /// Work of the host, with its NPU or alone; false if the NPU is lost before.
  [[nodiscard]] bool work(Stream& stream, const Task& task);
  /// Kernels, one or a block.
  [[nodiscard]] bool run_kernels(std::uint32_t index, const Task& task);
  /// Moves the stream's date behind a kernel that takes so long at full speed; false if its NPU is lost before.
  [[nodiscard]] bool compute(Stream& stream, Seconds duration, std::uint32_t name, const sim::TaskId& id);
  [[nodiscard]] bool run_block(Stream& stream, const Task& task);
  [[nodiscard]] static bool lose(Stream& stream);
  void free_block(const Task& task) { free_blocks_.push_back(task.index); }
  /// What has ended at the stream's date.
  void trace_task(const Stream& stream, sim::SpanKind kind, Seconds start, std::uint32_t name, const sim::TaskId& id);
  /// On shared NPUs: brings the next kernel of the stream's first task to the AI cores.
  void start_kernel(std::uint32_t index);
  void end_kernel(std::uint32_t index);
  /// True if the copy has ended at the stream's new date, false if an event will end it.
  [[nodiscard]] bool start_copy(std::uint32_t index, const Task& task);
  void end_copy(Stream& stream, const Task& task, Seconds start);
  CommunicatorId add_communicator(Communicator communicator, Seats seats);
  void call(StreamId stream, CommunicatorId communicator, Rank place, std::shared_ptr<const Schedule> schedule,
            std::uint32_t name, const sim::TaskId& id, const Pace& pace);
  void start_collective(std::uint32_t index, const Task& task);
  /// The communicator of messages from one rank to another under a tag; the first of them makes it.
  CommunicatorId channel(Rank source, Rank destination, std::uint32_t tag);
  CollectiveRun& run_of(const Call& call, std::uint32_t name);
  void end_collective(const CollectiveRun& run, std::uint32_t index, Seconds date);
  /// Frees the runs at the front that have ended and are not below in the stack of calls.
  static void forget_finished_runs(CommunicatorState& state);
  /// A wait is overdue; or, on shared NPUs, the kernel of the stream with this index has ended.
  void on_event(std::uint64_t tag) override;
  /// A wait may be overdue at the date of the clock: reports it, or sees to it that the first one to be so is looked
  /// at.
  void check_waits();

  Machine machine_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> streams_of_rank_;
  std::vector<Event> events_;
  std::deque<CommunicatorState> communicators_;  // deque: runs refer to their communicator
  std::vector<Call> calls_;
  std::vector<KernelRun> blocks_;
  std::vector<Copy> copies_;
  std::vector<std::function<void()>> functions_;
  std::map<std::tuple<Rank, Rank, std::uint32_t>, CommunicatorId> channels_;
  std::vector<std::uint32_t> free_calls_;
  std::vector<std::uint32_t> free_blocks_;
  std::vector<std::uint32_t> free_copies_;
  std::vector<std::uint32_t> free_functions_;
  std::vector<std::uint32_t> ready_;  // streams to advance
  bool draining_ = false;
  std::vector<CollectiveStats> finished_;
};

}  // namespace hcclsim::hccl
