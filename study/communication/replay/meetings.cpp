#include "study/communication/replay/meetings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using hccl::Collective;

/// Collectives of a trace by group, in program order.
using Calls = std::map<std::uint32_t, std::vector<std::uint32_t>>;

std::string text_of(const ExecutionTrace& trace, const TraceNode& node) {
  std::string text = fmt::format("{}", name_of(node.collective));
  if (node.collective != Collective::barrier) text += fmt::format(" of {} B", node.bytes);
  if (is_rooted(node.collective)) text += fmt::format(" with root {}", node.peer);
  if (!node.untyped) text += fmt::format(" of {}", name_of(node.type));
  return fmt::format("{} ({}node {})", text,
                     trace.names[node.name].empty() ? "" : fmt::format("{}, ", trace.names[node.name]), node.id);
}

bool agree(const ExecutionTrace& trace, const TraceNode& one, const TraceNode& other) {
  const auto key = [&](const TraceNode& node) {
    return std::tuple(node.collective, node.bytes, node.untyped, node.type,
                      reduces(node.collective) ? node.op : ReduceOp{}, is_rooted(node.collective) ? node.peer : 0,
                      node.in_place);
  };
  return key(one) == key(other) && trace.counts[one.counts] == trace.counts[other.counts];
}

void check_group(const ExecutionTrace& trace, const hccl::Communicator& group, const RankTrace& caller,
                 const TraceNode& call) {
  const std::string at = trace.place(caller, call);
  if (group.ranks.size() < 2) {
    bad_input("trace", "{}: a collective among one rank (group {}); nobody would be at its other end", at, group.name);
  }
  std::vector<bool> is_member(trace.ranks(), false);
  for (const Rank rank : group.ranks) {
    if (rank >= trace.ranks()) {
      bad_input("trace", "{}: group {} has rank {}, but the trace has ranks 0 to {}", at, group.name, rank,
                trace.ranks() - 1);
    }
    if (is_member[rank]) bad_input("trace", "{}: group {} has rank {} twice", at, group.name, rank);
    is_member[rank] = true;
  }
  if (is_rooted(call.collective) && call.peer >= group.ranks.size()) {
    bad_input("trace", "{}: root {} of a group of {} ranks", at, call.peer, group.ranks.size());
  }
}

/// That a rank has another group of this name, such as one with the same ranks in another order.
std::string namesake_of(const ExecutionTrace& trace, const hccl::Communicator& group, Rank rank) {
  const auto other = std::ranges::find_if(trace.groups, [&](const hccl::Communicator& one) {
    return one.name == group.name && one.ranks != group.ranks && std::ranges::find(one.ranks, rank) != one.ranks.end();
  });
  if (other == trace.groups.end()) return "";
  return fmt::format("; there are two groups of this name, one of ranks {} and one of ranks {}",
                     fmt::join(group.ranks, ","), fmt::join(other->ranks, ","));
}

/// The calls of a group by one of its members against those of another one.
void compare(const ExecutionTrace& trace, const hccl::Communicator& group, const std::array<Rank, 2>& ranks,
             const std::vector<std::uint32_t>& one, const std::vector<std::uint32_t>& other) {
  const auto& [first, second] = ranks;
  const std::size_t both = std::min(one.size(), other.size());
  for (std::size_t i = 0; i < both; ++i) {
    const TraceNode& a = trace.of(first).nodes[one[i]];
    const TraceNode& b = trace.of(second).nodes[other[i]];
    if (agree(trace, a, b)) continue;
    bad_input(
        "trace",
        "ranks do not call the same collectives in the same order: number {} on group {} is on rank {} {}, on rank "
        "{} {}",
        i + 1, group.name, first, text_of(trace, a), second, text_of(trace, b));
  }
  if (one.size() == other.size()) return;
  const bool first_has_more = one.size() > other.size();
  const Rank longer = first_has_more ? first : second;
  const TraceNode& left = trace.of(longer).nodes[(first_has_more ? one : other)[both]];
  const Rank shorter = first_has_more ? second : first;
  bad_input("trace", "rank {} calls {} on group {}, but rank {} has no such call: {} against {} collectives{}", longer,
            text_of(trace, left), group.name, shorter, one.size(), other.size(), namesake_of(trace, group, shorter));
}

/// One end of a message.
struct End {
  Rank source = 0;  // any_rank of a receive from anyone
  Rank destination = 0;
  std::uint64_t tag = 0;
  Bytes bytes = 0;
  std::uint32_t node = 0;

  [[nodiscard]] auto key() const { return std::tuple(source, destination, tag, bytes); }
  [[nodiscard]] auto open_key() const { return std::tuple(destination, bytes); }
  [[nodiscard]] auto channel() const { return std::tuple(source, destination, tag); }
};

struct Ends {
  std::vector<End> sends{};
  std::vector<End> receives{};
};

/// That an end has no other: `others` are all ends of the other kind.
[[noreturn]] void refuse_end(const ExecutionTrace& trace, const End& end, bool sends, const std::vector<End>& others) {
  const Rank rank = sends ? end.source : end.destination;
  const Rank peer = sends ? end.destination : end.source;
  const bool anyone = peer == TraceNode::any_rank;
  const auto near = std::ranges::find_if(
      others, [&](const End& other) { return other.channel() == end.channel() && other.bytes != end.bytes; });
  const std::string hint = near == others.end() ? ""
                                                : fmt::format(" (under this tag there is one of {} B: node {})",
                                                              near->bytes, trace.of(peer).nodes[near->node].id);
  bad_input("trace", "{} {} {} B {} {}{}, but {} {} that belongs to it{}",
            trace.place(trace.of(rank), trace.of(rank).nodes[end.node]), sends ? "sends" : "receives", end.bytes,
            sends ? "to" : "from", anyone ? "any rank" : fmt::format("rank {}", peer),
            end.tag == TraceNode::any_tag ? "" : fmt::format(" under tag {}", end.tag),
            anyone ? "no rank has a" : fmt::format("rank {} has no", peer), sends ? "receive" : "send", hint);
}

void check_peer(const ExecutionTrace& trace, Rank rank, const TraceNode& node) {
  const RankTrace& one = trace.of(rank);
  if (node.peer == rank) bad_input("trace", "{}: a message of rank {} to itself", trace.place(one, node), rank);
  if (node.peer < trace.ranks()) return;
  bad_input("trace", "{}: a message {} rank {}, which is missing: the trace has ranks 0 to {}", trace.place(one, node),
            node.kind == NodeKind::send ? "to" : "from", node.peer, trace.ranks() - 1);
}

}  // namespace

Meetings::Meetings(const ExecutionTrace& trace) {
  for (const RankTrace& one : trace.traces) order_.push_back(program_order(one));
  match_collectives(trace);
  match_messages(trace);
}

void Meetings::match_collectives(const ExecutionTrace& trace) {
  std::vector<Calls> calls(trace.traces.size());
  for (std::size_t i = 0; i < trace.traces.size(); ++i) {
    const RankTrace& one = trace.traces[i];
    std::vector<std::uint32_t>& next = next_calls_.emplace_back(one.nodes.size(), none);
    std::vector<std::uint32_t>& numbers = call_numbers_.emplace_back(one.nodes.size(), none);
    std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t> last;  // by group and stream
    for (const std::uint32_t node : order_[i]) {
      if (one.nodes[node].kind != NodeKind::collective) continue;
      check_group(trace, trace.groups[one.nodes[node].group], one, one.nodes[node]);
      std::vector<std::uint32_t>& of_group = calls[i][one.nodes[node].group];
      const auto [before, is_first] = last.try_emplace({one.nodes[node].group, one.nodes[node].stream}, node);
      if (!is_first) next[std::exchange(before->second, node)] = node;
      numbers[node] = static_cast<std::uint32_t>(of_group.size());
      of_group.push_back(node);
    }
  }
  static const std::vector<std::uint32_t> nothing;
  for (std::uint32_t group = 0; group < trace.groups.size(); ++group) {
    const hccl::Communicator& members = trace.groups[group];
    const auto calls_of = [&](Rank rank) -> const std::vector<std::uint32_t>& {
      const auto found = calls[trace.trace_of[rank]].find(group);
      return found == calls[trace.trace_of[rank]].end() ? nothing : found->second;
    };
    std::vector<bool> is_member(trace.ranks(), false);
    for (const Rank rank : members.ranks) {
      if (rank < trace.ranks()) is_member[rank] = true;  // of a group that is used, all are
    }
    for (Rank rank = 0; rank < trace.ranks(); ++rank) {
      if (is_member[rank] || calls_of(rank).empty()) continue;
      bad_input("trace", "{}: rank {} is not in group {} (ranks {})",
                trace.place(trace.of(rank), trace.of(rank).nodes[calls_of(rank).front()]), rank, members.name,
                hccl::rank_ranges(members.ranks));
    }
    const bool used =
        std::ranges::any_of(members.ranks, [&](Rank rank) { return rank < trace.ranks() && !calls_of(rank).empty(); });
    if (!used) continue;
    const Rank first = members.ranks.front();
    for (const Rank rank : members.ranks) {
      if (trace.trace_of[rank] == trace.trace_of[first]) continue;
      compare(trace, members, {first, rank}, calls_of(first), calls_of(rank));
    }
  }
}

void Meetings::match_messages(const ExecutionTrace& trace) {
  Ends ends;
  std::vector<bool> is_open(trace.ranks(), false);
  message_of_.resize(trace.ranks());
  for (Rank rank = 0; rank < trace.ranks(); ++rank) {
    const RankTrace& one = trace.of(rank);
    for (const std::uint32_t number : order_[trace.trace_of[rank]]) {
      const TraceNode& node = one.nodes[number];
      if (node.kind != NodeKind::send && node.kind != NodeKind::receive) continue;
      if (node.peer != TraceNode::any_rank) check_peer(trace, rank, node);
      if (node.peer == TraceNode::any_rank || node.tag == TraceNode::any_tag) is_open[rank] = true;
      const bool is_send = node.kind == NodeKind::send;
      (is_send ? ends.sends : ends.receives)
          .push_back({is_send ? rank : node.peer, is_send ? node.peer : rank, node.tag, node.bytes, number});
    }
  }
  if (!ends.sends.empty() || !ends.receives.empty()) {
    for (Rank rank = 0; rank < trace.ranks(); ++rank) message_of_[rank].assign(trace.of(rank).nodes.size(), none);
  }
  const auto closed = [&](const End& end) { return !is_open[end.destination]; };
  Ends open;
  for (const auto& [from, to] : {std::pair{&ends.sends, &open.sends}, std::pair{&ends.receives, &open.receives}}) {
    const auto first = std::stable_partition(from->begin(), from->end(), closed);
    to->assign(first, from->end());
    from->erase(first, from->end());
  }
  const auto pair_up = [&](Ends& some, const auto& key, bool are_open) {
    std::ranges::stable_sort(some.sends, {}, key);
    std::ranges::stable_sort(some.receives, {}, key);
    const auto& [sends, receives] = some;
    const std::size_t most = std::max(sends.size(), receives.size());
    for (std::size_t i = 0; i < most; ++i) {
      const bool no_send = i >= sends.size() || (i < receives.size() && key(receives[i]) < key(sends[i]));
      if (no_send) refuse_end(trace, receives[i], false, sends);
      if (i >= receives.size() || key(sends[i]) < key(receives[i])) refuse_end(trace, sends[i], true, receives);
      message_of_[sends[i].source][sends[i].node] = static_cast<std::uint32_t>(messages_.size());
      if (!are_open) message_of_[sends[i].destination][receives[i].node] = static_cast<std::uint32_t>(messages_.size());
      messages_.push_back({sends[i].source, sends[i].destination, sends[i].node, receives[i].node, are_open});
    }
  };
  pair_up(
      ends, [](const End& end) { return end.key(); }, false);
  pair_up(
      open, [](const End& end) { return end.open_key(); }, true);
}

}  // namespace hcclsim::study
