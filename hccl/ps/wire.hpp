#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/cpu_hosts.hpp"
#include "sim/event_loop.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/network.hpp"

/// Messages between workers and servers over the links of the platform. Messages from one node to another one follow
/// each other, as in one connection; those of different pairs are under way at the same time and share links. Every
/// message takes a call's software time before its first byte leaves. Control messages have no bytes to speak of.
namespace hcclsim::hccl {

/// Where a node runs.
struct PsHost {
  bool cpu = false;          ///< the CPU of a server of the platform, else an NPU
  std::uint32_t number = 0;  ///< of the CPU or the NPU
  bool operator==(const PsHost&) const = default;
};

/// What bytes are sent for.
enum class PsTraffic : std::uint8_t {
  initial_weights,
  push,
  pull,
  look_up,  ///< rows of tables that a batch reads
  cache,    ///< rows that enter and leave caches on devices
  migration,
  recovery,
};
inline constexpr std::size_t ps_traffics = 7;
[[nodiscard]] std::string_view name_of(PsTraffic traffic);

using PsBytes = std::array<Bytes, ps_traffics>;
[[nodiscard]] Bytes total(const PsBytes& bytes);

class PsWire final : private sim::EventHandler {
 public:
  using Arrival = std::function<void()>;

  /// `faults` are those of the network; null: none.
  PsWire(sim::EventLoop& loop, sim::Network& network, sim::Cluster& cluster, Seconds call_time,
         const sim::FaultPlan* faults);
  PsWire(const PsWire&) = delete;
  PsWire& operator=(const PsWire&) = delete;
  ~PsWire() override = default;

  /// Adds a node, which is alive; nodes are numbered from 0.
  std::uint32_t add_node(PsHost host);

  /// Sends bytes from one node to another; `arrival` is called when the last one is there, unless one of the ends died
  /// or forget_all() was called before.
  void send(std::uint32_t from, std::uint32_t to, Bytes bytes, PsTraffic traffic, Arrival arrival);
  /// What a control message from one node to another takes if nothing holds it.
  [[nodiscard]] Seconds control_time(std::uint32_t from, std::uint32_t to);
  /// When one that is sent now arrives, which a fault may hold: at the nodes, or on the way; perhaps never.
  [[nodiscard]] Seconds control_arrival(std::uint32_t from, std::uint32_t to);

  /// The node dies: nothing of what was sent to it or by it arrives any more.
  void kill(std::uint32_t node);
  /// … and is there again, on the same host.
  void revive(std::uint32_t node) { nodes_[node].alive = true; }
  [[nodiscard]] PsHost host(std::uint32_t node) const { return nodes_[node].host; }
  [[nodiscard]] bool alive(std::uint32_t node) const { return nodes_[node].alive; }
  /// Nothing of what is under way arrives any more.
  void forget_all() { ++epoch_; }
  /// Another value after the node has died or everything was forgotten.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> life(std::uint32_t node) const {
    return {epoch_, nodes_[node].life};
  }

  struct NodeBytes {
    PsBytes sent{};      ///< of messages that arrived
    PsBytes received{};  ///< the same
    Bytes lost = 0;      ///< of messages that were sent to it or by it and did not arrive
  };
  [[nodiscard]] const NodeBytes& bytes(std::uint32_t node) const { return nodes_[node].bytes; }
  /// Bytes that each link has carried, as they load its capacity; index: LinkId.
  [[nodiscard]] const std::vector<double>& link_bytes() const { return link_bytes_; }
  /// The way of messages; null: both ends are on one CPU.
  [[nodiscard]] const sim::Route* route(std::uint32_t from, std::uint32_t to);
  struct UnderWay {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Bytes bytes = 0;
    PsTraffic traffic = PsTraffic::push;
    Seconds since = 0;
  };
  /// Messages that have begun and not arrived, in the order of their nodes.
  [[nodiscard]] std::vector<UnderWay> under_way() const;
  /// The links by which messages reach and leave a node's host: last and first links of the routes that were used.
  [[nodiscard]] std::vector<sim::LinkId> links_into(std::uint32_t node);
  [[nodiscard]] std::vector<sim::LinkId> links_out_of(std::uint32_t node);

 private:
  struct Node {
    PsHost host;
    bool alive = true;
    std::uint32_t life = 0;  // grows when it dies
    NodeBytes bytes;
  };
  struct Message {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Bytes bytes = 0;
    PsTraffic traffic = PsTraffic::push;
    std::uint32_t from_life = 0;
    std::uint32_t to_life = 0;
    std::uint32_t epoch = 0;
    Arrival arrival;
    Seconds begin = 0;
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;

  void on_event(std::uint64_t tag) override;
  void start(Pair pair);
  [[nodiscard]] bool counts(const Message& message) const;
  /// When a node that has something to do from a date on does it.
  [[nodiscard]] Seconds resumes(std::uint32_t node, Seconds date) const;

  sim::EventLoop& loop_;
  sim::Network& network_;
  sim::Cluster& cluster_;
  sim::CpuHosts cpus_;
  Seconds call_time_;
  const sim::FaultPlan* faults_;  // null: there are none
  std::uint32_t epoch_ = 0;
  std::vector<Node> nodes_;
  std::map<Pair, std::deque<Message>> channels_;  // the first one is under way
  std::vector<Pair> pairs_;                       // by tag
  std::map<Pair, std::uint64_t> tags_;
  std::vector<double> link_bytes_;
};

}  // namespace hcclsim::hccl
