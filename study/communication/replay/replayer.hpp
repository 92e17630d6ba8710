#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/trace.hpp"
#include "study/communication/replay/execution_trace.hpp"
#include "study/communication/replay/meetings.hpp"
#include "study/communication/replay/node_times.hpp"
#include "study/communication/replay/trace_schedules.hpp"

/// Carries out an execution trace: a client of the runtime. A node is ready when those that it waits for have ended; it
/// begins when what it occupies is free. Of ready nodes the one with the lowest id begins first. A rank has
///
///     its CPU          tasks of the CPU, one at a time
///     its AI cores     computations and accesses to memory, one at a time
///     a communication  collectives and sends, one at a time, each until it has ended
///     stream           (or one stream per group: CommunicationStreams)
///     network cards    instead, of sends that name one: one at a time, each until its bytes have left, which is as
///     long
///                      as its route takes for them without its latency (LogGOPS's gap per byte)
///
/// and beside them the streams that nodes name. Receives occupy nothing. A send waits for its receive, on a card
/// without occupying it; one to a buffer does not, and then the receive ends when it has begun and the bytes are there.
/// Collectives of a rank on one group and stream begin in program order. Where a rank receives from anyone, the receive
/// that began first meets the first send that has begun and fits.
namespace hcclsim::study {

/// What collectives and sends of a rank share, if they name no stream.
enum class CommunicationStreams : std::uint8_t { one, per_group };

class Replayer {
 public:
  struct Settings {
    NodeTimes times = NodeTimes::recorded;
    CommunicationStreams streams = CommunicationStreams::one;
  };
  struct Dates {
    Seconds start = std::numeric_limits<Seconds>::quiet_NaN();  ///< it begins to occupy its stream
    Seconds end = std::numeric_limits<Seconds>::quiet_NaN();
  };

  /// All that is passed must outlive it. Throws what node_time() throws.
  Replayer(const ExecutionTrace& trace, const Meetings& meetings, TraceSchedules& schedules, hccl::Runtime& runtime,
           sim::Trace& spans, const Settings& settings);

  /// Begins what can begin; the rest follows while the runtime runs.
  void start();
  /// When nothing is left to do: throws Error(simulated_failure, "deadlock") that says which nodes wait for which, if
  /// some have not ended.
  void require_finished() const;

  [[nodiscard]] const std::vector<Dates>& dates(Rank rank) const { return ranks_[rank].dates; }
  /// Transfers between NPUs that have ended.
  [[nodiscard]] std::uint64_t transfers() const { return transfers_; }

 private:
  static constexpr std::uint32_t none = ~0U;
  static constexpr std::uint32_t communication = 2;  // after the CPU and the AI cores; then groups, then named streams

  /// Of each node those that wait for it: `nodes` from begins[node] to begins[node + 1].
  struct Followers {
    std::vector<std::uint32_t> begins;
    std::vector<std::uint32_t> nodes;
  };
  /// What ranks with one trace have in common.
  struct Program {
    const RankTrace* trace = nullptr;
    std::vector<std::uint32_t> open;  // of each node, for so many others it waits
    Followers after_end;
    Followers after_begin;                // but for the next collective on the group
    std::vector<std::uint32_t> resource;  // of each node; none: it occupies nothing
    std::uint32_t resources = 0;
    std::vector<Seconds> durations;
  };
  struct Resource {
    std::uint32_t occupant = none;
    std::uint32_t stream = none;  // of the runtime, once it is used
    std::priority_queue<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::pair<std::uint64_t, std::uint32_t>>,
                        std::greater<>>
        ready;  // ids and nodes
  };
  struct RankState {
    std::vector<std::uint32_t> open;
    std::vector<Dates> dates;
    std::vector<Resource> resources;
    std::vector<std::uint32_t> idle_streams;  // of receives
  };
  /// Collectives of a group share communicators of the runtime: one that all ranks have called is free for the next.
  struct GroupCalls {
    std::vector<std::uint32_t> free;
    struct Call {
      std::uint32_t communicator = 0;
      std::uint32_t missing = 0;  // ranks that have not called
    };
    std::unordered_map<std::uint32_t, Call> open;  // by their numbers
  };
  /// Messages between two ranks share channels of the runtime: one that has both ends is free for the next.
  struct Channels {
    std::vector<std::uint32_t> free;
    std::uint32_t made = 0;
  };

  struct Place {
    Rank rank = 0;
    std::uint32_t node = 0;
    auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr): it takes <=> for a comparison
  };
  struct MessageState {
    std::uint32_t receive = none;  // node of the destination; none as long as an open message has not met one
    std::uint32_t channel = none;
    bool arrived = false;  // at its buffer
  };
  /// Ends of open messages to a rank that have begun and not met, in this order.
  struct Unmet {
    std::vector<std::uint32_t> messages;
    std::vector<std::uint32_t> receives;  // nodes
  };

  void prepare(const RankTrace& trace, const std::vector<std::uint32_t>& next_calls, const Settings& settings);
  [[nodiscard]] std::uint32_t resource_of(const TraceNode& node, const Settings& settings, Program& program);
  [[nodiscard]] const Program& program(Rank rank) const { return programs_[trace_.trace_of[rank]]; }
  [[nodiscard]] const TraceNode& node(const Place& at) const { return trace_.of(at.rank).nodes[at.node]; }

  /// What the followers of a node wait for has happened.
  void release(Rank rank, const Followers& followers, std::uint32_t node);
  void become_ready(const Place& at);
  /// Begins nodes until nothing more can begin.
  void settle();
  void begin(const Place& at, std::uint32_t resource);
  void pass(const Place& at);
  void carry_out(const Place& at, std::uint32_t resource);
  void enqueue(const Place& at, hccl::StreamId stream);
  void end(const Place& at, std::uint32_t resource, hccl::StreamId stream);
  void finish(const Place& at);
  void free_resource(Rank rank, std::uint32_t resource);
  [[nodiscard]] hccl::CommunicatorId communicator_of(std::uint32_t group, std::uint32_t call);
  [[nodiscard]] hccl::StreamId idle_stream(Rank rank);

  // How messages meet and leave (replayed_messages.cpp)
  void begin_send(const Place& at, std::uint32_t resource);
  void begin_receive(const Place& at);
  void join(std::uint32_t message);
  void fill_buffer(std::uint32_t message);
  void arrive(std::uint32_t message, hccl::StreamId stream);
  void enqueue_end(const Place& at, std::uint32_t message, hccl::StreamId stream);
  void meet(std::uint32_t message, std::uint32_t receive);
  [[nodiscard]] bool fit(std::uint32_t message, const Place& receive) const;
  [[nodiscard]] std::uint32_t message_at(const Place& at) const;
  [[nodiscard]] const TraceNode& sent(const Meetings::Message& message) const;
  [[nodiscard]] Seconds leaving_time(const Meetings::Message& message) const;
  [[nodiscard]] std::uint32_t channel_of(std::uint32_t message);

  // Why it does not go on (standstill.cpp)
  struct Obstacle {
    std::string why;
    Place other{};
    bool has_other = true;
  };
  struct Facts;
  [[nodiscard]] bool ended(const Place& at) const;
  [[nodiscard]] bool begun(const Place& at) const;
  [[nodiscard]] Obstacle obstacle(const Place& at) const;
  [[nodiscard]] Obstacle missing_end(const Place& at) const;
  /// In program order of the first rank that has one.
  [[nodiscard]] Place first_unfinished() const;

  const ExecutionTrace& trace_;
  const Meetings& meetings_;
  TraceSchedules& schedules_;
  hccl::Runtime& runtime_;
  std::vector<std::uint32_t> names_;  // of the trace, in the runtime's
  std::vector<Program> programs_;
  std::vector<RankState> ranks_;
  std::map<std::int32_t, std::uint32_t> named_streams_;  // of the program that is prepared
  std::map<std::int32_t, std::uint32_t> cards_;          // the same
  std::vector<GroupCalls> calls_;                        // of each group
  std::vector<MessageState> messages_;
  std::map<Place, std::uint32_t> met_;                     // open messages of receives
  std::map<Rank, Unmet> unmet_;                            // by destination
  std::unordered_map<std::uint64_t, Channels> channels_;   // by source and destination
  std::vector<std::pair<Rank, std::uint32_t>> to_settle_;  // resources
  std::vector<Place> free_nodes_;                          // ready, and they occupy nothing
  std::uint64_t ended_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace hcclsim::study
