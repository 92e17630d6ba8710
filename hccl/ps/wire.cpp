#include "hccl/ps/wire.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace hcclsim::hccl {

std::string_view name_of(PsTraffic traffic) {
  constexpr std::array<std::string_view, ps_traffics> names{"initial weights", "push",      "pull",    "look-up",
                                                            "cache",           "migration", "recovery"};
  return names[static_cast<std::size_t>(traffic)];
}

Bytes total(const PsBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

PsWire::PsWire(sim::EventLoop& loop, sim::Network& network, sim::Cluster& cluster, Seconds call_time,
               const sim::FaultPlan* faults)
    : loop_(loop),
      network_(network),
      cluster_(cluster),
      cpus_(cluster),
      call_time_(call_time),
      faults_(faults),
      link_bytes_(cluster.links().size(), 0) {}

std::uint32_t PsWire::add_node(PsHost host) {
  nodes_.push_back({.host = host, .bytes = {}});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

const sim::Route* PsWire::route(std::uint32_t from, std::uint32_t to) {
  const PsHost source = nodes_[from].host;
  const PsHost destination = nodes_[to].host;
  if (source == destination) return nullptr;
  if (!source.cpu && !destination.cpu) return &cluster_.route(source.number, destination.number);
  if (source.cpu && destination.cpu) return &cpus_.between(source.number, destination.number);
  return source.cpu ? &cpus_.to_npu(source.number, destination.number)
                    : &cpus_.from_npu(source.number, destination.number);
}

Seconds PsWire::control_time(std::uint32_t from, std::uint32_t to) {
  const sim::Route* const way = route(from, to);
  if (way == nullptr) return call_time_;
  return call_time_ + (faults_ == nullptr ? way->latency : faults_->latency(*way, loop_.now()));
}

Seconds PsWire::resumes(std::uint32_t node, Seconds date) const {
  const PsHost host = nodes_[node].host;
  return host.cpu ? date : faults_->resumes(host.number, date);
}

Seconds PsWire::control_arrival(std::uint32_t from, std::uint32_t to) {
  if (faults_ == nullptr) return loop_.now() + control_time(from, to);
  const Seconds leaves = resumes(from, loop_.now()) + call_time_;
  const sim::Route* const way = route(from, to);
  if (way == nullptr || std::isinf(leaves)) return leaves;
  const Seconds passes = faults_->passes(*way, leaves);
  return std::isinf(passes) ? passes : resumes(to, passes + faults_->latency(*way, passes));
}

std::vector<PsWire::UnderWay> PsWire::under_way() const {
  std::vector<UnderWay> all;
  for (const auto& [pair, channel] : channels_) {
    if (channel.empty() || !counts(channel.front())) continue;
    const Message& message = channel.front();
    all.push_back({pair.first, pair.second, message.bytes, message.traffic, message.begin});
  }
  return all;
}

bool PsWire::counts(const Message& message) const {
  return message.epoch == epoch_ && message.from_life == nodes_[message.from].life &&
         message.to_life == nodes_[message.to].life;
}

void PsWire::send(std::uint32_t from, std::uint32_t to, Bytes bytes, PsTraffic traffic, Arrival arrival) {
  if (!nodes_[from].alive || !nodes_[to].alive) return;
  const Pair pair{from, to};
  std::deque<Message>& channel = channels_[pair];
  channel.push_back({from, to, bytes, traffic, nodes_[from].life, nodes_[to].life, epoch_, std::move(arrival), 0});
  if (channel.size() == 1) start(pair);
}

void PsWire::start(Pair pair) {
  const auto [known, is_new] = tags_.try_emplace(pair, pairs_.size());
  if (is_new) pairs_.push_back(pair);
  Message& message = channels_[pair].front();
  message.begin = loop_.now();
  const sim::EventOrder order{pair.second, pair.first};
  const sim::Route* const way = route(pair.first, pair.second);
  const Seconds date = loop_.now() + call_time_;
  if (way == nullptr) {
    loop_.at(date, order, *this, known->second);
    return;
  }
  visit_ways(*way, message.bytes, [&](const sim::Route& part, double share) {
    for (const sim::LinkId link : part.links) {
      link_bytes_[link] += static_cast<double>(message.bytes) * part.write_factor * share;
    }
  });
  network_.transfer(*way, sim::Access::write, message.bytes, date, order, *this, known->second);
}

void PsWire::on_event(std::uint64_t tag) {
  const Pair pair = pairs_[tag];
  std::deque<Message>& channel = channels_[pair];
  const Message message = std::move(channel.front());
  channel.pop_front();
  // What was sent to a node that died, or by it, is dropped: the next message that counts begins.
  while (!channel.empty() && !counts(channel.front())) {
    nodes_[pair.first].bytes.lost += channel.front().bytes;
    nodes_[pair.second].bytes.lost += channel.front().bytes;
    channel.pop_front();
  }
  if (!channel.empty()) start(pair);
  Node& source = nodes_[message.from];
  Node& destination = nodes_[message.to];
  if (!counts(message)) {
    source.bytes.lost += message.bytes;
    destination.bytes.lost += message.bytes;
    return;
  }
  const auto kind = static_cast<std::size_t>(message.traffic);
  source.bytes.sent[kind] += message.bytes;
  destination.bytes.received[kind] += message.bytes;
  if (message.arrival) message.arrival();
}

void PsWire::kill(std::uint32_t node) {
  nodes_[node].alive = false;
  ++nodes_[node].life;
}

std::vector<sim::LinkId> PsWire::links_into(std::uint32_t node) {
  std::set<sim::LinkId> links;
  for (const auto& [pair, tag] : tags_) {
    if (pair.second != node) continue;
    if (const auto* const way = route(pair.first, node)) links.insert(way->links.back());
  }
  return {links.begin(), links.end()};
}

std::vector<sim::LinkId> PsWire::links_out_of(std::uint32_t node) {
  std::set<sim::LinkId> links;
  for (const auto& [pair, tag] : tags_) {
    if (pair.first != node) continue;
    if (const auto* const way = route(node, pair.second)) links.insert(way->links.front());
  }
  return {links.begin(), links.end()};
}

}  // namespace hcclsim::hccl
