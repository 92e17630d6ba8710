#include "hccl/ps/running/members.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

std::optional<std::uint32_t> PsMembers::find(PsNodeName name) const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].left && nodes_[node].name == name) return node;
  }
  return std::nullopt;
}

bool PsMembers::all_alive() const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].left && !wire_.alive(node)) return false;
  }
  return true;
}

std::uint32_t PsMembers::next_number(PsRole role) const {
  const auto plays = [role](const PsMember& node) { return node.name.role == role; };
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, plays));
}

std::uint32_t PsMembers::next_rank(PsRole role) const {
  const auto has_one = [role](const PsMember& node) {
    return node.name.role == role && node.rank.has_value() && !node.left;
  };
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, has_one));
}

std::uint32_t PsMembers::add(PsRole role, PsHost host, Seconds delay) {
  const PsNodeName name{role, next_number(role)};
  const std::uint32_t node = wire_.add_node(host);
  nodes_.push_back({.name = name});
  if (state_ == PsState::starting) (role == PsRole::server ? servers_ : workers_).push_back(node);
  ++unregistered_;
  const auto late = options_.node_delays.find(to_string(name));
  if (late != options_.node_delays.end()) delay += late->second;
  Seconds begin = timeline_.now() + delay;
  if (options_.faults != nullptr && !host.cpu) begin = std::max(begin, options_.faults->begins(host.number));
  timeline_.always_at(begin + options_.costs.call, [this, node] {
    if (wire_.alive(node)) registered(node);
  });
  return node;
}

void PsMembers::registered(std::uint32_t node) {
  if (!scheduler_alive_) {
    note(id(node), "finds no scheduler to register with");
    return;
  }
  nodes_[node].rank = next_rank(nodes_[node].name.role);
  nodes_[node].registered = true;
  nodes_[node].born = timeline_.now();
  --unregistered_;
  note(id(node), fmt::format("registers with rank {}", *nodes_[node].rank));
  if (unregistered_ > 0) return;
  if (state_ != PsState::starting) {
    complete_(false);
    return;
  }
  // From now on every node does what is of its rank.
  for (std::uint32_t one = 0; one < nodes_.size(); ++one) {
    (nodes_[one].name.role == PsRole::server ? servers_ : workers_)[nodes_[one].rank.value()] = one;
  }
  outcome_.ready = timeline_.now();
  enter(PsState::ready, fmt::format("all {} nodes have registered", nodes_.size()));
  timeline_.always_at(timeline_.now() + options_.costs.call, [this] { complete_(true); });
}

void PsMembers::set_servers(std::vector<std::uint32_t> nodes) {
  servers_ = std::move(nodes);
  for (std::uint32_t rank = 0; rank < servers_.size(); ++rank) {
    PsMember& member = nodes_[servers_[rank]];
    if (member.rank == rank) continue;
    note(id(servers_[rank]), fmt::format("has rank {} from now on, which was {}", rank, member.rank.value()));
    member.rank = rank;
  }
}

void PsMembers::leave(std::uint32_t node) {
  note(id(node), "leaves");
  nodes_[node].left = true;
  wire_.kill(node);
}

void PsMembers::revive(std::uint32_t node) {
  wire_.revive(node);
  nodes_[node].born = timeline_.now();
  nodes_[node].detected = false;
}

void PsMembers::enter(PsState state, std::string what) {
  state_ = state;
  note("scheduler", std::move(what));
}

void PsMembers::note(const std::string& node, std::string what) {
  outcome_.events.push_back({timeline_.now(), node, std::move(what), state_});
}

void PsMembers::end_job(std::string failure) {
  state_ = PsState::exit;
  note(scheduler_alive_ ? "scheduler" : "nodes",
       failure.empty() ? "all workers have done their steps" : failure + "; all nodes exit");
  outcome_.failure = std::move(failure);
  outcome_.end = timeline_.now();
  timeline_.end();
}

/// Addresses are made up, one for each server of the platform and a port for each node, and stay the same.
std::string PsMembers::answer() const {
  constexpr std::uint32_t first_port = 10000;
  constexpr std::uint32_t per_byte = 254;
  std::string list;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const PsMember& one = nodes_[node];
    if (one.left || !one.registered) continue;
    const PsHost host = wire_.host(node);
    const std::uint32_t machine = host.cpu ? host.number : cluster_.npu(host.number).server;
    list +=
        fmt::format("{}{} {} rank {} 10.0.{}.{}:{} {}", list.empty() ? "" : ", ", to_string(one.name),
                    one.name.role == PsRole::server ? "SERVER" : "WORKER", one.rank.value(), machine / per_byte,
                    machine % per_byte + 1, first_port + node, wire_.alive(node) || !one.detected ? "alive" : "lost");
  }
  return list;
}

PsNodeFigures PsMembers::figures(std::uint32_t node) const {
  const PsWire::NodeBytes& bytes = wire_.bytes(node);
  return {.name = id(node),
          .rank = nodes_[node].rank,
          .server = nodes_[node].name.role == PsRole::server,
          .host = wire_.host(node),
          .sent = bytes.sent,
          .received = bytes.received,
          .lost = bytes.lost};
}

}  // namespace hcclsim::hccl
