#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
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

void Replayer::require_finished() const {
  const std::uint64_t all = trace_.nodes();
  if (ended_ == all) return;
  Place at;
  for (bool found = false; !found; ++at.rank) {
    for (const std::uint32_t number : program_order(trace_.of(at.rank))) {
      if (ended({at.rank, number})) continue;
      at.node = number;
      found = true;
      break;
    }
    if (found) break;
  }
  std::vector<Place> way;
  std::vector<std::string> lines;
  constexpr std::size_t most_lines = 24;
  while (std::ranges::find(way, at) == way.end() && lines.size() < most_lines) {
    const Obstacle next = obstacle(at);
    way.push_back(at);
    lines.push_back(fmt::format("\n  {} {}{}", trace_.place(at.rank, node(at)), next.why,
                                next.has_other ? ": " + trace_.place(next.other.rank, node(next.other)) : ""));
    if (!next.has_other) break;
    at = next.other;
  }
  std::string message = fmt::format("the replay does not come to its end: {} of {} nodes have ended;", ended_, all);
  const bool circle = std::ranges::find(way, at) != way.end() && way.size() > 1;
  message += circle ? " nodes wait for each other:" : " nodes wait:";
  for (const std::string& line : lines) message += line;
  simulated_failure("deadlock", "{}", message);
}

}  // namespace hcclsim::study
