#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"
#include "hccl/ps/wire.hpp"
#include "sim/cluster.hpp"

/// The members of a running job as its scheduler knows them: nodes register and get ranks, some leave, and the state of
/// the cluster changes with an event for each of these. Nodes are numbered as on the wire; workers and servers by their
/// ranks, which follow the order of registration.
namespace hcclsim::hccl {

struct PsMember {
  PsNodeName name;
  std::optional<std::uint32_t> rank{};  ///< among the nodes of its role; none: it has not registered
  bool registered = false;
  bool detected = false;  ///< its loss is known
  bool left = false;      ///< the cluster was scaled in
  Seconds born = 0;       ///< when it registered last
};

class PsMembers {
 public:
  /// Writes events, dates and the failure to `outcome`. `complete` is called when no node is left to register: for the
  /// `first` time a call's software time after training has become possible.
  PsMembers(const PsOptions& options, const sim::Cluster& cluster, PsWire& wire, PsTimeline& timeline,
            PsOutcome& outcome, std::function<void(bool first)> complete)
      : options_(options),
        cluster_(cluster),
        wire_(wire),
        timeline_(timeline),
        outcome_(outcome),
        complete_(std::move(complete)) {}

  /// A node is started now, and registers after `delay` if it begins at once. Returns its number.
  std::uint32_t add(PsRole role, PsHost host, Seconds delay);
  [[nodiscard]] std::size_t unregistered() const { return unregistered_; }
  [[nodiscard]] bool any_registered() const { return std::ranges::any_of(nodes_, &PsMember::registered); }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] const PsMember& of(std::uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] std::string id(std::uint32_t node) const { return to_string(nodes_[node].name); }
  /// The node with this name that has not left.
  [[nodiscard]] std::optional<std::uint32_t> find(PsNodeName name) const;
  [[nodiscard]] bool alive(std::uint32_t node) const { return wire_.alive(node); }
  [[nodiscard]] bool all_alive() const;
  /// Those that were started first, until all of them have registered; then by rank.
  [[nodiscard]] std::uint32_t worker(std::uint32_t rank) const { return workers_[rank]; }
  [[nodiscard]] std::uint32_t server(std::uint32_t rank) const { return servers_[rank]; }
  /// By which a worker's speed and host are known.
  [[nodiscard]] std::uint32_t number(std::uint32_t worker) const { return nodes_[workers_[worker]].name.number; }

  /// From now on these are the servers, by rank; or this is the worker of the next rank.
  void set_servers(std::vector<std::uint32_t> nodes);
  void add_worker(std::uint32_t node) { workers_.push_back(node); }
  void leave(std::uint32_t node);
  /// The loss of a node is known.
  void detect(std::uint32_t node) { nodes_[node].detected = true; }
  /// A lost node is there again, with its rank.
  void revive(std::uint32_t node);

  [[nodiscard]] PsState state() const { return state_; }
  /// The scheduler says so with a new state.
  void enter(PsState state, std::string what);
  void note(const std::string& node, std::string what);
  [[nodiscard]] bool scheduler_alive() const { return scheduler_alive_; }
  void lose_scheduler() { scheduler_alive_ = false; }
  /// Nothing happens any more; an empty failure: all steps are done.
  void end_job(std::string failure);
  /// What the scheduler answers whom asks for all nodes.
  [[nodiscard]] std::string answer() const;
  /// What a node has sent and received until now.
  [[nodiscard]] PsNodeFigures figures(std::uint32_t node) const;

 private:
  void registered(std::uint32_t node);
  [[nodiscard]] std::uint32_t next_rank(PsRole role) const;
  [[nodiscard]] std::uint32_t next_number(PsRole role) const;

  const PsOptions& options_;
  const sim::Cluster& cluster_;
  PsWire& wire_;
  PsTimeline& timeline_;
  PsOutcome& outcome_;
  std::function<void(bool first)> complete_;
  std::vector<PsMember> nodes_;
  std::vector<std::uint32_t> workers_;  // nodes, by rank
  std::vector<std::uint32_t> servers_;
  std::size_t unregistered_ = 0;
  PsState state_ = PsState::starting;
  bool scheduler_alive_ = true;
};

}  // namespace hcclsim::hccl
