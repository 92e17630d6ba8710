#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "hccl/runtime/trail.hpp"
#include "study/communication/replay/replayer.hpp"

/// Why a replay does not go on: from a node that has not ended to what it waits for, and on to what that waits for.
namespace hcclsim::study {

bool Replayer::ended(const Place& at) const { return !std::isnan(ranks_[at.rank].dates[at.node].end); }
bool Replayer::begun(const Place& at) const { return !std::isnan(ranks_[at.rank].dates[at.node].start); }

/// Of communication under way, the end that has not come.
Replayer::Obstacle Replayer::missing_end(const Place& at) const {
  const TraceNode& waiting = node(at);
  if (waiting.kind == NodeKind::send || waiting.kind == NodeKind::receive) {
    const bool sends = waiting.kind == NodeKind::send;
    const std::uint32_t number = message_at(at);
    if (number == none || messages_[number].receive == none) {
      return {fmt::format("waits for a {} that fits", sends ? "receive" : "message"), {}, false};
    }
    const Meetings::Message& message = meetings_.messages()[number];
    const Place other =
        sends ? Place{message.destination, messages_[number].receive} : Place{message.source, message.send};
    if (!begun(other)) return {fmt::format("waits for its {}", sends ? "receive" : "send"), other};
    return {"is under way", {}, false};
  }
  if (waiting.kind != NodeKind::collective) return {"has not ended", {}, false};
  const auto calls_of = [&](Rank rank) {
    std::vector<std::uint32_t> calls;
    for (const std::uint32_t number : program_order(trace_.of(rank))) {
      const TraceNode& one = node({rank, number});
      if (one.kind == NodeKind::collective && one.group == waiting.group) calls.push_back(number);
    }
    return calls;
  };
  const std::vector<std::uint32_t> own = calls_of(at.rank);
  const auto number = std::ranges::find(own, at.node) - own.begin();
  for (const Rank rank : trace_.groups[waiting.group].ranks) {
    if (rank == at.rank) continue;
    const Place other{rank, trace_.trace_of[rank] == trace_.trace_of[at.rank]
                                ? at.node
                                : calls_of(rank)[static_cast<std::size_t>(number)]};
    if (!begun(other)) return {fmt::format("waits for rank {} in the collective", rank), other};
  }
  return {"is under way", {}, false};
}

Replayer::Obstacle Replayer::obstacle(const Place& at) const {
  if (begun(at)) return missing_end(at);
  const RankTrace& trace = trace_.of(at.rank);
  const TraceNode& waiting = trace.nodes[at.node];
  for (const std::uint32_t before : trace.ends_before(waiting)) {
    if (!ended({at.rank, before})) return {"waits for the end of a node", {at.rank, before}};
  }
  for (const std::uint32_t before : trace.begins_before(waiting)) {
    if (!begun({at.rank, before})) return {"waits for the begin of a node", {at.rank, before}};
  }
  const std::vector<std::uint32_t>& next = meetings_.next_calls(trace_.trace_of[at.rank]);
  const auto previous = std::ranges::find(next, at.node);
  if (waiting.kind == NodeKind::collective && previous != next.end()) {
    const Place before{at.rank, static_cast<std::uint32_t>(previous - next.begin())};
    if (!begun(before)) return {"comes behind another collective on its group and stream", before};
  }
  const std::uint32_t resource = program(at.rank).resource[at.node];
  const std::uint32_t occupant = resource == none ? none : ranks_[at.rank].resources[resource].occupant;
  if (occupant == none) return {"has not begun", {}, false};
  return {"is ready, but what it needs is occupied", {at.rank, occupant}};
}

/// What hccl::trail_from() asks of a replay. Without faults nothing stands still for a cause of its own, so a long
/// chain of nodes may be cut short.
struct Replayer::Facts {
  const Replayer& replayer;
  std::uint32_t most_lines = 24;

  [[nodiscard]] static Place key(const Place& at) { return at; }
  [[nodiscard]] std::string line(const Place& at) const {
    const Obstacle next = replayer.obstacle(at);
    const auto place = [this](const Place& of) { return replayer.trace_.place(of.rank, replayer.node(of)); };
    return fmt::format("\n  {} {}{}", place(at), next.why, next.has_other ? ": " + place(next.other) : "");
  }
  [[nodiscard]] hccl::Origin<Place> origin(const Place& at) {
    const Obstacle next = replayer.obstacle(at);
    if (!next.has_other || --most_lines == 0) return {};
    return {.next = {next.other}};
  }
};

Replayer::Place Replayer::first_unfinished() const {
  for (Rank rank = 0; rank < trace_.ranks(); ++rank) {
    for (const std::uint32_t number : program_order(trace_.of(rank))) {
      if (!ended({rank, number})) return {rank, number};
    }
  }
  internal_error("a replay that does not end has no node that has not ended");
}

void Replayer::require_finished() const {
  const std::uint64_t all = trace_.nodes();
  if (ended_ == all) return;
  const hccl::Trail trail = hccl::trail_from(first_unfinished(), Facts{*this});
  simulated_failure("deadlock", "the replay does not come to its end: {} of {} nodes have ended; nodes wait{}:{}",
                    ended_, all, trail.is_circle ? " for each other" : "", trail.lines);
}

}  // namespace hcclsim::study
