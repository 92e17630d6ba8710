#include "study/replay/replayer.hpp"

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
      channel_of_message_(meetings.messages().size(), none) {
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
  if (node.kind == NodeKind::metadata || node.kind == NodeKind::receive || node.concurrent) return none;
  if (node.stream != TraceNode::by_kind) {
    const auto [found, is_new] = named_streams_.try_emplace(node.stream, program.resources);
    if (is_new) ++program.resources;
    return found->second;
  }
  if (node.kind == NodeKind::compute || node.kind == NodeKind::memory) return node.host ? cpu : ai_cores;
  if (settings.streams == CommunicationStreams::one || node.kind == NodeKind::send) return communication;
  return communication + 1 + node.group;
}

void Replayer::start() {
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    for (std::uint32_t node = 0; node < ranks_[rank].open.size(); ++node) {
      if (program(rank).open[node] == 0) become_ready(rank, node);
    }
    settle(rank);
  }
}

void Replayer::release(Rank rank, const Followers& followers, std::uint32_t node) {
  for (std::uint32_t i = followers.begins[node]; i < followers.begins[node + 1]; ++i) {
    const std::uint32_t follower = followers.nodes[i];
    if (--ranks_[rank].open[follower] == 0) become_ready(rank, follower);
  }
}

void Replayer::become_ready(Rank rank, std::uint32_t node) {
  const std::uint32_t resource = program(rank).resource[node];
  if (resource == none) {
    free_nodes_.push_back(node);
    return;
  }
  ranks_[rank].resources[resource].ready.emplace(this->node(rank, node).id, node);
  to_settle_.push_back(resource);
}

void Replayer::settle(Rank rank) {
  while (!to_settle_.empty() || !free_nodes_.empty()) {
    if (!free_nodes_.empty()) {
      const std::uint32_t node = free_nodes_.back();
      free_nodes_.pop_back();
      if (this->node(rank, node).kind == NodeKind::metadata) {
        pass(rank, node);
      } else {
        begin(rank, node, none);
      }
      continue;
    }
    const std::uint32_t number = to_settle_.back();
    to_settle_.pop_back();
    Resource& resource = ranks_[rank].resources[number];
    if (resource.occupant != none || resource.ready.empty()) continue;
    const std::uint32_t node = resource.ready.top().second;
    resource.ready.pop();
    resource.occupant = node;
    begin(rank, node, number);
  }
}

/// A node that does nothing ends as it begins.
void Replayer::pass(Rank rank, std::uint32_t node) {
  ranks_[rank].dates[node] = {runtime_.now(), runtime_.now()};
  ++ended_;
  release(rank, program(rank).after_begin, node);
  release(rank, program(rank).after_end, node);
}

void Replayer::begin(Rank rank, std::uint32_t node, std::uint32_t resource) {
  RankState& state = ranks_[rank];
  state.dates[node].start = runtime_.now();
  hccl::StreamId stream;
  if (resource == none) {
    stream = idle_stream(state, rank);
  } else {
    std::uint32_t& of_resource = state.resources[resource].stream;
    if (of_resource == none) of_resource = runtime_.create_stream(rank).index;
    stream = {of_resource};
  }
  enqueue(rank, node, stream);
  runtime_.host_function(stream, [this, rank, node, resource, stream] { end(rank, node, resource, stream); });
  release(rank, program(rank).after_begin, node);
  if (this->node(rank, node).buffered) release(rank, program(rank).after_end, node);
}

void Replayer::enqueue(Rank rank, std::uint32_t number, hccl::StreamId stream) {
  const TraceNode& node = this->node(rank, number);
  const std::uint32_t name = names_[node.name];
  const sim::TaskId id{.task = number, .iteration = 0};
  switch (node.kind) {
    case NodeKind::compute:
    case NodeKind::memory: {
      const Seconds duration = program(rank).durations[number];
      if (node.host) {
        runtime_.host_work(stream, duration, name, id);
      } else {
        runtime_.launch(stream, duration, name, id);
      }
      return;
    }
    case NodeKind::collective: {
      const std::uint32_t call = meetings_.call_number(trace_.trace_of[rank], number);
      runtime_.collective(stream, communicator_of(node.group, call), schedules_.of(node), name, id);
      return;
    }
    case NodeKind::send:
    case NodeKind::receive: {
      const std::uint32_t message = meetings_.message_of(rank, number);
      const Meetings::Message& ends = meetings_.messages()[message];
      // The sender's node says what is sent.
      const auto schedule = schedules_.of(this->node(ends.source, ends.send));
      const std::uint32_t channel = channel_of(message);
      if (node.kind == NodeKind::send) {
        runtime_.send(stream, node.peer, channel, schedule, name, id);
      } else {
        runtime_.receive(stream, node.peer, channel, schedule, name, id);
      }
      return;
    }
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

/// The end that comes first takes a channel, and the other one gives it back: both have called it as often.
std::uint32_t Replayer::channel_of(std::uint32_t message) {
  const Meetings::Message& ends = meetings_.messages()[message];
  constexpr unsigned bits_of_rank = 32;
  Channels& channels = channels_[(std::uint64_t{ends.source} << bits_of_rank) | ends.destination];
  std::uint32_t& channel = channel_of_message_[message];
  if (channel != none) {
    channels.free.push_back(channel);
    return channel;
  }
  if (channels.free.empty()) {
    channel = channels.made++;
  } else {
    channel = channels.free.back();
    channels.free.pop_back();
  }
  return channel;
}

hccl::StreamId Replayer::idle_stream(RankState& state, Rank rank) {
  if (state.idle_streams.empty()) return runtime_.create_stream(rank);
  const std::uint32_t stream = state.idle_streams.back();
  state.idle_streams.pop_back();
  return {stream};
}

void Replayer::end(Rank rank, std::uint32_t node, std::uint32_t resource, hccl::StreamId stream) {
  RankState& state = ranks_[rank];
  state.dates[node].end = runtime_.now();
  ++ended_;
  if (resource == none) {
    state.idle_streams.push_back(stream.index);
  } else {
    state.resources[resource].occupant = none;
    to_settle_.push_back(resource);
  }
  for (const hccl::CollectiveStats& stats : runtime_.collectives()) transfers_ += stats.transfers;
  runtime_.forget_collectives();
  if (!this->node(rank, node).buffered) release(rank, program(rank).after_end, node);
  settle(rank);
}

}  // namespace hcclsim::study
