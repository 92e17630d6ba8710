#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// Nodes that are lost. The scheduler hears of it by the heartbeats that do not come. Without recovery all nodes exit
// then. With it the others wait, until the node is started again and gets the rank of the one that was lost.
namespace hcclsim::hccl {

void RunningJob::fail(const PsFailure& failure) {
  if (failure.node.role == PsRole::scheduler) {
    lose_scheduler();
    return;
  }
  const std::optional<std::uint32_t> found = node_of(failure.node);
  if (!found.has_value() || !wire_.alive(*found)) {
    note("scheduler", fmt::format("{} cannot fail: it does not run", to_string(failure.node)));
    return;
  }
  const std::uint32_t node = *found;
  note(id_of(node), "fails");
  wire_.kill(node);
  const std::uint32_t life = ++lives_[node];
  if (!nodes_[node].registered) return;  // the cluster waits for it until its own time-out
  const Seconds beat = options_.times.heartbeat;
  const Seconds last = nodes_[node].born + std::floor((loop_.now() - nodes_[node].born) / beat) * beat;
  const Seconds look = std::max(loop_.now(), (std::floor((last + options_.times.node_timeout) / beat) + 1) * beat);
  always_at(look, [this, node, life] {
    if (scheduler_alive_ && lives_[node] == life && !wire_.alive(node)) detect(node);
  });
  if (failure.restart.has_value()) {
    always_at(*failure.restart, [this, node, life] {
      if (lives_[node] == life && !wire_.alive(node)) restart(node);
    });
  }
}

/// Nobody answers requests, takes registrations or watches nodes any more. Nodes that have registered end when they
/// miss it; others go on trying until the cluster's time-out.
void RunningJob::lose_scheduler() {
  if (!scheduler_alive_) {
    note("scheduler", "scheduler cannot fail: it does not run");
    return;
  }
  scheduler_alive_ = false;
  note("scheduler", "fails");
  if (std::ranges::none_of(nodes_, &NodeLife::registered)) return;
  always_at(loop_.now() + options_.times.scheduler_timeout, [this] {
    end_job(fmt::format("the scheduler has not been heard of for {} s", options_.times.scheduler_timeout));
  });
}

void RunningJob::detect(std::uint32_t node) {
  const std::string id = id_of(node);
  nodes_[node].detected = true;
  const bool was_starting = state_ == PsState::starting;
  const bool scaling = migrating_ || is_coming(node);
  state_ = PsState::node_timeout;
  note("scheduler", fmt::format("no heartbeat of {} for {} s", id, options_.times.node_timeout));
  if (was_starting || scaling) {
    end_job(fmt::format("{} was lost while the cluster was {}", id, was_starting ? "starting" : "being scaled"));
  } else if (!recoverable(options_.recovery, nodes_[node].name.role, nodes_[node].rank.value())) {
    end_job(fmt::format("{} is lost, and {}", id,
                        options_.recovery.enabled ? "only a server of another rank than 0 can be recovered from copies"
                                                  : "recovery is off"));
  } else {
    always_at(loop_.now() + options_.times.cluster_timeout, [this, node, life = lives_[node]] {
      if (lives_[node] == life && !wire_.alive(node)) {
        end_job(fmt::format("{} has not come back within {} s", id_of(node), options_.times.cluster_timeout));
      }
    });
  }
}

/// Whether a node has been added and has nothing of the job yet.
bool RunningJob::is_coming(std::uint32_t node) const {
  return std::ranges::find(coming_servers_, node) != coming_servers_.end() ||
         std::ranges::find(coming_workers_, node) != coming_workers_.end();
}

void RunningJob::restart(std::uint32_t node) {
  const std::string id = id_of(node);
  const PsRole role = nodes_[node].name.role;
  const std::uint32_t rank = nodes_[node].rank.value();
  if (!scheduler_alive_) {
    note(id, "starts again, but there is no scheduler to register with");
    return;
  }
  if (!recoverable(options_.recovery, role, rank) || migrating_ || is_coming(node) || state_ == PsState::starting) {
    note(id, "starts again, but its registration is refused");
    return;
  }
  wire_.revive(node);
  nodes_[node].born = loop_.now();
  nodes_[node].detected = false;
  note(id, fmt::format("starts again and gets rank {}", rank));
  if (options_.recovery.from == PsRecovery::From::copies) {
    restore(rank);
    return;
  }
  if (role == PsRole::server) servers_[rank].restoring = true;  // until all go back
  if (nodes_alive()) roll_back();
}

/// Every piece comes from the worker with the newest copy.
void RunningJob::restore(std::uint32_t server) {
  Server& me = servers_[server];
  me.restoring = true;
  me.free_at = loop_.now();
  const auto left = std::make_shared<std::size_t>(1);
  const auto arrived = [=, this] {
    if (--*left == 0) restored(server);
  };
  for (const std::uint32_t piece : me.pieces) {
    ++*left;
    wire_.send(workers_[newest_copy(piece)].node, me.node, pieces_[piece].bytes(), PsTraffic::recovery, arrived);
  }
  at(loop_.now() + options_.costs.call, me.node, arrived);
}

std::uint32_t RunningJob::newest_copy(std::uint32_t piece) const {
  std::uint32_t best = 0;
  for (std::uint32_t worker = 1; worker < workers_.size(); ++worker) {
    if (workers_[worker].version[piece] > workers_[best].version[piece]) best = worker;
  }
  return best;
}

void RunningJob::restored(std::uint32_t server) {
  Server& me = servers_[server];
  me.restoring = false;
  for (const std::uint32_t piece : me.pieces) {
    PieceState& state = states_[piece];
    const std::uint32_t source = newest_copy(piece);
    state.version = workers_[source].version[piece];
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      // A gradient that came in a later version is not in this one; its worker still has it.
      if (state.applied_in[worker] > state.version) state.applied[worker] = workers_[worker].step;
      state.applied_in[worker] = std::min(state.applied_in[worker], state.version);
    }
    log({.kind = PsLogEntry::Kind::restore,
         .worker = source,
         .key = pieces_[piece].key,
         .first = pieces_[piece].first,
         .elements = pieces_[piece].elements,
         .version = state.version});
  }
  restart_rounds(server);
  note(id_of(me.node), "has its weights back from the workers' copies");
  if (all_alive() && scheduler_alive_) {
    state_ = barrier_wanted_ ? scaling_ : PsState::ready;
    note("scheduler", "all nodes are there");
  }
  go_on_with(server);
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    for (const std::uint32_t piece : servers_[server].pieces) initial_weights_arrived(worker, piece);
  }
  look_at_barrier();
}

/// Workers push again what is not in the weights of the server, and pull what they have not got.
void RunningJob::go_on_with(std::uint32_t server) {
  for (const std::uint32_t piece : std::vector(servers_[server].pieces)) {
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      const Worker& one = workers_[worker];
      const Doing doing = one.running ? one.doing[piece] : Doing::nothing;
      if (doing != Doing::pushing && doing != Doing::pulling) continue;
      if (states_[piece].applied[worker] > one.step) {
        acknowledged(worker, piece);
      } else {
        want(worker, piece);
      }
    }
  }
}

/// All go back to the last checkpoint, the weights of worker 0 at the begin of a step, which the workers send to the
/// servers as they sent the initial ones.
void RunningJob::roll_back() {
  ++epoch_;
  wire_.forget_all();
  for (PieceState& state : states_) state.asking.clear();
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    const auto saved = checkpoint_.versions.find(pieces_[piece].key);
    states_[piece].version = saved == checkpoint_.versions.end() ? 0 : saved->second;
    states_[piece].applied.assign(workers_.size(), checkpoint_.step);
    states_[piece].applied_in.assign(workers_.size(), states_[piece].version);
  }
  for (Server& server : servers_) {
    server.free_at = loop_.now();
    server.restoring = false;
  }
  for (Worker& worker : workers_) {
    worker.step = checkpoint_.step;
    worker.finished = false;
    prepare(worker);
    new_caches(worker);
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) worker.version[piece] = states_[piece].version;
  }
  batches_.clear();
  restart_rounds();
  state_ = barrier_wanted_ ? scaling_ : PsState::ready;
  note("scheduler", fmt::format("all nodes are there; all go back to the checkpoint before step {}", checkpoint_.step));
  log({.kind = PsLogEntry::Kind::rollback, .step = checkpoint_.step});
  send_initial_weights();
}

}  // namespace hcclsim::hccl
