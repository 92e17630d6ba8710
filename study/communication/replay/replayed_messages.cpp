#include <algorithm>

#include "study/communication/replay/replayer.hpp"

/// How messages of a replay meet, and how their bytes leave.
namespace hcclsim::study {

const TraceNode& Replayer::sent(const Meetings::Message& message) const { return node({message.source, message.send}); }

std::uint32_t Replayer::message_at(const Place& at) const {
  const std::uint32_t known = meetings_.message_of(at.rank, at.node);
  if (known != none) return known;
  const auto found = met_.find(at);
  return found == met_.end() ? none : found->second;
}

bool Replayer::fit(std::uint32_t message, const Place& receive) const {
  const Meetings::Message& ends = meetings_.messages()[message];
  const TraceNode& wanted = node(receive);
  return wanted.bytes == sent(ends).bytes && (wanted.peer == TraceNode::any_rank || wanted.peer == ends.source) &&
         (wanted.tag == TraceNode::any_tag || wanted.tag == sent(ends).tag);
}

void Replayer::meet(std::uint32_t message, std::uint32_t receive) {
  messages_[message].receive = receive;
  met_.emplace(Place{meetings_.messages()[message].destination, receive}, message);
}

void Replayer::begin_send(const Place& at, std::uint32_t resource) {
  const std::uint32_t number = message_at(at);
  const Meetings::Message& ends = meetings_.messages()[number];
  const bool waits = node(at).card != TraceNode::no_card && !node(at).buffered;
  if (!waits) carry_out(at, resource);
  if (node(at).buffered) fill_buffer(number);
  if (ends.open) {
    Unmet& unmet = unmet_[ends.destination];
    const auto receive = std::ranges::find_if(unmet.receives, [&](std::uint32_t one) {
      return fit(number, {ends.destination, one});
    });
    if (receive == unmet.receives.end()) {
      unmet.messages.push_back(number);
      return;
    }
    meet(number, *receive);
    if (!node(at).buffered) carry_out({ends.destination, *receive}, none);
    unmet.receives.erase(receive);
  }
  if (begun({ends.destination, messages_[number].receive})) join(number);
}

void Replayer::begin_receive(const Place& at) {
  if (message_at(at) == none) {
    Unmet& unmet = unmet_[at.rank];
    const auto message = std::ranges::find_if(unmet.messages, [&](std::uint32_t one) { return fit(one, at); });
    if (message == unmet.messages.end()) {
      unmet.receives.push_back(at.node);
      return;
    }
    meet(*message, at.node);
    unmet.messages.erase(message);
  }
  const std::uint32_t number = message_at(at);
  const Meetings::Message& ends = meetings_.messages()[number];
  if (!sent(ends).buffered) carry_out(at, none);
  if (begun({ends.source, ends.send})) join(number);
}

/// Both ends have begun.
void Replayer::join(std::uint32_t message) {
  const Meetings::Message& ends = meetings_.messages()[message];
  if (!sent(ends).buffered) {
    if (sent(ends).card != TraceNode::no_card) become_ready({ends.source, ends.send});
  } else if (messages_[message].arrived) {
    finish({ends.destination, messages_[message].receive});
  }
}

/// The destination takes the bytes of a message beside what its nodes do.
void Replayer::fill_buffer(std::uint32_t message) {
  const Meetings::Message& ends = meetings_.messages()[message];
  const hccl::StreamId stream = idle_stream(ends.destination);
  enqueue_end({ends.destination, ends.receive}, message, stream);
  runtime_.host_function(stream, [this, message, stream] { arrive(message, stream); });
}

void Replayer::arrive(std::uint32_t message, hccl::StreamId stream) {
  const Meetings::Message& ends = meetings_.messages()[message];
  ranks_[ends.destination].idle_streams.push_back(stream.index);
  messages_[message].arrived = true;
  const Place receive{ends.destination, messages_[message].receive};
  if (receive.node != none && begun(receive)) finish(receive);
  settle();
}

void Replayer::enqueue_end(const Place& at, std::uint32_t message, hccl::StreamId stream) {
  const Meetings::Message& ends = meetings_.messages()[message];
  const std::uint32_t name = names_[node(at).name];
  const sim::TaskId id{.task = at.node, .iteration = 0};
  const auto schedule = schedules_.of(sent(ends));  // the sender's node says what is sent
  const std::uint32_t channel = channel_of(message);
  if (node(at).kind == NodeKind::send) {
    runtime_.send(stream, ends.destination, channel, schedule, name, id);
  } else {
    runtime_.receive(stream, ends.source, channel, schedule, name, id);
  }
}

/// By the idle route, without its latency: bytes that meet others on their way are no longer on the card.
Seconds Replayer::leaving_time(const Meetings::Message& message) const {
  sim::Cluster& cluster = runtime_.machine().cluster;
  const sim::Route& route = cluster.route(message.source, message.destination);
  const Bytes bytes = sent(message).bytes;
  Seconds longest = 0;
  sim::visit_ways(route, bytes, [&](const sim::Route& way, double share) {
    const double load = static_cast<double>(bytes) * share * way.write_factor;
    longest = std::max(longest, load / cluster.capacity(way.slowest));
  });
  return longest;
}

/// The end that comes first takes a channel, and the other one gives it back: both have called it as often.
std::uint32_t Replayer::channel_of(std::uint32_t message) {
  const Meetings::Message& ends = meetings_.messages()[message];
  constexpr unsigned bits_of_rank = 32;
  Channels& channels = channels_[(std::uint64_t{ends.source} << bits_of_rank) | ends.destination];
  std::uint32_t& channel = messages_[message].channel;
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

}  // namespace hcclsim::study
