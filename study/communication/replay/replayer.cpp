#include "study/communication/replay/replayer.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

constexpr std::uint32_t cpu = 0;
constexpr std::uint32_t ai_cores = 1;

}  // namespace

Replayer::Replayer(const ExecutionTrace& trace, const Meetings& meetings, TraceSchedules& schedules,
                   hccl::Runtime& runtime, sim::Trace& spans, const Settings& settings)
    : trace_(trace),
      meetings_(meetings),
      schedules_(schedules),
      runtime_(runtime),
      calls_(trace.groups.size()),
      messages_(meetings.messages().size()) {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (const Meetings::Message& one = meetings.messages()[i]; !one.open) messages_[i].receive = one.receive;
  }
  for (const std::string& name : trace.names) names_.push_back(spans.intern(name));
  for (std::uint32_t i = 0; i < trace.traces.size(); ++i) {
    prepare(trace.traces[i], meetings.next_calls(i), settings);
  }
  for (Rank rank = 0; rank < trace.ranks(); ++rank) {
    const Program& own = program(rank);
    ranks_.push_back({own.open, std::vector<Dates>(own.open.size()), std::vector<Resource>(own.resources), {}});
  }
}

void Replayer::prepare(const RankTrace& trace, const std::vector<std::uint32_t>& next_calls, const Settings& settings) {
  Program& program = programs_.emplace_back();
  program.trace = &trace;
  const std::size_t nodes = trace.nodes.size();
  named_streams_.clear();
  cards_.clear();
  const auto groups = static_cast<std::uint32_t>(trace_.groups.size());
  program.resources = communication + 1 + (settings.streams == CommunicationStreams::per_group ? groups : 0);
  program.open.assign(nodes, 0);
  program.after_end.begins.assign(nodes + 1, 0);
  program.after_begin.begins.assign(nodes + 1, 0);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const TraceNode& node = trace.nodes[i];
    program.open[i] += node.dependencies + node.start_dependencies;
    for (const std::uint32_t before : trace.ends_before(node)) ++program.after_end.begins[before + 1];
    for (const std::uint32_t before : trace.begins_before(node)) ++program.after_begin.begins[before + 1];
    if (next_calls[i] != none) {
      ++program.after_begin.begins[i + 1];
      ++program.open[next_calls[i]];
    }
    program.resource.push_back(resource_of(node, settings, program));
    program.durations.push_back(node_time(trace_, trace, node, settings.times, runtime_.machine().soc));
  }
  for (Followers* followers : {&program.after_end, &program.after_begin}) {
    for (std::size_t i = 1; i <= nodes; ++i) followers->begins[i] += followers->begins[i - 1];
    followers->nodes.resize(followers->begins[nodes]);
  }
  std::vector<std::uint32_t> end_places(program.after_end.begins);
  std::vector<std::uint32_t> begin_places(program.after_begin.begins);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const TraceNode& node = trace.nodes[i];
    for (const std::uint32_t before : trace.ends_before(node)) program.after_end.nodes[end_places[before]++] = i;
    for (const std::uint32_t before : trace.begins_before(node)) program.after_begin.nodes[begin_places[before]++] = i;
    if (next_calls[i] != none) program.after_begin.nodes[begin_places[i]++] = next_calls[i];
  }
}

std::uint32_t Replayer::resource_of(const TraceNode& node, const Settings& settings, Program& program) {
  const auto of_number = [&](std::map<std::int32_t, std::uint32_t>& known, std::int32_t number) {
    const auto [found, is_new] = known.try_emplace(number, program.resources);
    if (is_new) ++program.resources;
    return found->second;
  };
  if (node.kind == NodeKind::metadata || node.kind == NodeKind::receive) return none;
  if (node.card != TraceNode::no_card) return of_number(cards_, node.card);
  if (node.stream != TraceNode::by_kind) return of_number(named_streams_, node.stream);
  if (node.kind == NodeKind::compute || node.kind == NodeKind::memory) return node.host ? cpu : ai_cores;
  if (settings.streams == CommunicationStreams::one || node.kind == NodeKind::send) return communication;
  return communication + 1 + node.group;
}

void Replayer::start() {
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    for (std::uint32_t node = 0; node < ranks_[rank].open.size(); ++node) {
      if (program(rank).open[node] == 0) become_ready({rank, node});
    }
    settle();
  }
}

void Replayer::release(Rank rank, const Followers& followers, std::uint32_t node) {
  for (std::uint32_t i = followers.begins[node]; i < followers.begins[node + 1]; ++i) {
    const std::uint32_t follower = followers.nodes[i];
    if (--ranks_[rank].open[follower] == 0) become_ready({rank, follower});
  }
}

/// A send that waits for its receive begins without its card, and becomes ready for that when both are there.
void Replayer::become_ready(const Place& at) {
  const TraceNode& ready = node(at);
  const std::uint32_t resource = program(at.rank).resource[at.node];
  const bool waits = ready.card != TraceNode::no_card && !ready.buffered && !begun(at);
  if (resource == none || waits) {
    free_nodes_.push_back(at);
    return;
  }
  ranks_[at.rank].resources[resource].ready.emplace(ready.id, at.node);
  to_settle_.emplace_back(at.rank, resource);
}

void Replayer::settle() {
  while (!to_settle_.empty() || !free_nodes_.empty()) {
    if (!free_nodes_.empty()) {
      const Place at = free_nodes_.back();
      free_nodes_.pop_back();
      if (node(at).kind == NodeKind::metadata) {
        pass(at);
      } else {
        begin(at, none);
      }
      continue;
    }
    const auto [rank, number] = to_settle_.back();
    to_settle_.pop_back();
    Resource& resource = ranks_[rank].resources[number];
    if (resource.occupant != none || resource.ready.empty()) continue;
    const Place at{rank, resource.ready.top().second};
    resource.ready.pop();
    resource.occupant = at.node;
    if (begun(at)) {
      carry_out(at, number);
    } else {
      begin(at, number);
    }
  }
}

/// A node that does nothing ends as it begins.
void Replayer::pass(const Place& at) {
  ranks_[at.rank].dates[at.node].start = runtime_.now();
  release(at.rank, program(at.rank).after_begin, at.node);
  finish(at);
}

void Replayer::begin(const Place& at, std::uint32_t resource) {
  ranks_[at.rank].dates[at.node].start = runtime_.now();
  const NodeKind kind = node(at).kind;
  if (kind == NodeKind::send) {
    begin_send(at, resource);
  } else if (kind == NodeKind::receive) {
    begin_receive(at);
  } else {
    carry_out(at, resource);
  }
  release(at.rank, program(at.rank).after_begin, at.node);
}

void Replayer::carry_out(const Place& at, std::uint32_t resource) {
  const bool by_card = resource != none && node(at).card != TraceNode::no_card;
  const std::uint32_t until_end = by_card ? none : resource;
  hccl::StreamId stream;
  if (until_end == none) {
    stream = idle_stream(at.rank);
  } else {
    std::uint32_t& of_resource = ranks_[at.rank].resources[resource].stream;
    if (of_resource == none) of_resource = runtime_.create_stream(at.rank).index;
    stream = {of_resource};
  }
  enqueue(at, stream);
  runtime_.host_function(stream, [this, at, until_end, stream] { end(at, until_end, stream); });
  if (!by_card) return;
  const Seconds left = runtime_.now() + leaving_time(meetings_.messages()[message_at(at)]);
  runtime_.machine().loop.at(left, {.rank = at.rank}, [this, at, resource] {
    free_resource(at.rank, resource);
    settle();
  });
}

void Replayer::enqueue(const Place& at, hccl::StreamId stream) {
  const TraceNode& node = this->node(at);
  const std::uint32_t name = names_[node.name];
  const sim::TaskId id{.task = at.node, .iteration = 0};
  switch (node.kind) {
    case NodeKind::compute:
    case NodeKind::memory: {
      const Seconds duration = program(at.rank).durations[at.node];
      if (node.host) {
        runtime_.host_work(stream, duration, name, id);
      } else {
        runtime_.launch(stream, duration, name, id);
      }
      return;
    }
    case NodeKind::collective: {
      const std::uint32_t call = meetings_.call_number(trace_.trace_of[at.rank], at.node);
      runtime_.collective(stream, communicator_of(node.group, call), schedules_.of(node), name, id);
      return;
    }
    case NodeKind::send:
    case NodeKind::receive:
      enqueue_end(at, message_at(at), stream);
      return;
    case NodeKind::metadata:
      break;
  }
  internal_error("node {} has nothing to do", node.id);
}

/// The rank that comes first takes a communicator, and the last one gives it back: all have called it as often.
hccl::CommunicatorId Replayer::communicator_of(std::uint32_t group, std::uint32_t call) {
  GroupCalls& calls = calls_[group];
  const auto [found, is_new] = calls.open.try_emplace(call);
  GroupCalls::Call& own = found->second;
  if (is_new) {
    own.missing = static_cast<std::uint32_t>(trace_.groups[group].ranks.size());
    if (calls.free.empty()) {
      own.communicator = runtime_.create_communicator(trace_.groups[group]).index;
    } else {
      own.communicator = calls.free.back();
      calls.free.pop_back();
    }
  }
  const hccl::CommunicatorId communicator{own.communicator};
  if (--own.missing == 0) {
    calls.free.push_back(own.communicator);
    calls.open.erase(found);
  }
  return communicator;
}

hccl::StreamId Replayer::idle_stream(Rank rank) {
  std::vector<std::uint32_t>& idle = ranks_[rank].idle_streams;
  if (idle.empty()) return runtime_.create_stream(rank);
  const std::uint32_t stream = idle.back();
  idle.pop_back();
  return {stream};
}

void Replayer::free_resource(Rank rank, std::uint32_t resource) {
  ranks_[rank].resources[resource].occupant = none;
  to_settle_.emplace_back(rank, resource);
}

void Replayer::end(const Place& at, std::uint32_t resource, hccl::StreamId stream) {
  if (resource == none) {
    ranks_[at.rank].idle_streams.push_back(stream.index);
  } else {
    free_resource(at.rank, resource);
  }
  finish(at);
  settle();
}

void Replayer::finish(const Place& at) {
  ranks_[at.rank].dates[at.node].end = runtime_.now();
  ++ended_;
  for (const hccl::CollectiveStats& stats : runtime_.collectives()) transfers_ += stats.transfers;
  runtime_.forget_collectives();
  release(at.rank, program(at.rank).after_end, at.node);
}

}  // namespace hcclsim::study
