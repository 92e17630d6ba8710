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
#include "study/replay/execution_trace.hpp"
#include "study/replay/meetings.hpp"
#include "study/replay/node_times.hpp"
#include "study/replay/trace_schedules.hpp"

/// Carries out an execution trace: a client of the runtime. A node is ready when those that it waits for have ended; it
/// begins when what it occupies is free. Of ready nodes the one with the lowest id begins first. A rank has
///
///     its CPU          tasks of the CPU, one at a time
///     its AI cores     computations and accesses to memory, one at a time
///     a communication  collectives and sends, one at a time, each until it has ended
///     stream           (or one stream per group: CommunicationStreams)
///
/// and beside them the streams that nodes name. Receives occupy nothing. Collectives of a rank on one group and
/// stream begin in program order.
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

  void prepare(const RankTrace& trace, const std::vector<std::uint32_t>& next_calls, const Settings& settings);
  [[nodiscard]] std::uint32_t resource_of(const TraceNode& node, const Settings& settings, Program& program);
  [[nodiscard]] const Program& program(Rank rank) const { return programs_[trace_.trace_of[rank]]; }
  [[nodiscard]] const TraceNode& node(Rank rank, std::uint32_t node) const { return trace_.of(rank).nodes[node]; }

  /// What the followers of a node wait for has happened.
  void release(Rank rank, const Followers& followers, std::uint32_t node);
  void become_ready(Rank rank, std::uint32_t node);
  /// Begins nodes until nothing more can begin.
  void settle(Rank rank);
  void begin(Rank rank, std::uint32_t node, std::uint32_t resource);
  void pass(Rank rank, std::uint32_t node);
  void enqueue(Rank rank, std::uint32_t node, hccl::StreamId stream);
  void end(Rank rank, std::uint32_t node, std::uint32_t resource, hccl::StreamId stream);
  [[nodiscard]] std::uint32_t channel_of(std::uint32_t message);
  [[nodiscard]] hccl::CommunicatorId communicator_of(std::uint32_t group, std::uint32_t call);
  [[nodiscard]] hccl::StreamId idle_stream(RankState& state, Rank rank);

  // Why it does not go on (standstill.cpp)
  struct Place {
    Rank rank = 0;
    std::uint32_t node = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Obstacle {
    std::string why;
    Place other{};
    bool has_other = true;
  };
  [[nodiscard]] bool ended(const Place& at) const;
  [[nodiscard]] bool begun(const Place& at) const;
  [[nodiscard]] Obstacle obstacle(const Place& at) const;
  [[nodiscard]] Obstacle missing_end(const Place& at) const;

  const ExecutionTrace& trace_;
  const Meetings& meetings_;
  TraceSchedules& schedules_;
  hccl::Runtime& runtime_;
  std::vector<std::uint32_t> names_;  // of the trace, in the runtime's
  std::vector<Program> programs_;
  std::vector<RankState> ranks_;
  std::map<std::int32_t, std::uint32_t> named_streams_;  // of the program that is prepared
  std::vector<GroupCalls> calls_;                        // of each group
  std::vector<std::uint32_t> channel_of_message_;
  std::unordered_map<std::uint64_t, Channels> channels_;  // by source and destination
  std::vector<std::uint32_t> to_settle_;                  // resources of the rank that is settled
  std::vector<std::uint32_t> free_nodes_;                 // of this rank: ready, and they occupy nothing
  std::uint64_t ended_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace hcclsim::study
