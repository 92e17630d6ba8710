#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// Scaling: all are told, the running iterations end, nodes register anew, weights move to their new servers, and the
// job goes on with them.
namespace hcclsim::hccl {

void RunningJob::scale_out(const PsRequest& request) {
  if (request.servers == 0 && request.workers == 0) {
    note("scheduler", "HTTP 400: scaleout of no node");
    return;
  }
  state_ = PsState::scale_out;
  note("scheduler", fmt::format("HTTP 200: scaleout by {} servers and {} workers", request.servers, request.workers));
  for (std::uint32_t i = 0; i < request.servers; ++i) {
    coming_servers_.push_back(
        add_node(PsRole::server, options_.spare_servers.at(used_servers_++), options_.node_start));
  }
  for (std::uint32_t i = 0; i < request.workers; ++i) {
    coming_workers_.push_back(
        add_node(PsRole::worker, options_.spare_workers.at(used_workers_++), options_.node_start));
  }
  always_at(loop_.now() + options_.times.cluster_timeout, [this] {
    if (unregistered_ > 0) end_job(fmt::format("{} new nodes have not registered", unregistered_));
  });
  want_barrier();
}

void RunningJob::scale_in(const PsRequest& request) {
  const auto refuse = [this](const std::string& why) { note("scheduler", "HTTP 400: " + why); };
  if (request.nodes.empty()) return refuse("scalein of no node");
  std::vector<std::uint32_t> ranks;
  for (const std::string& id : request.nodes) {
    const std::optional<PsNodeName> name = parse_node_name(id);
    const std::optional<std::uint32_t> node = name.has_value() ? node_of(*name) : std::nullopt;
    if (!node.has_value()) {
      return refuse(fmt::format("scalein: there is no node {}", id));
    }
    if (name->role == PsRole::worker) return refuse(fmt::format("scalein: {} is a worker, which stays", id));
    const std::uint32_t rank = nodes_[*node].rank.value();
    if (rank == 0) return refuse(fmt::format("scalein: {} has rank 0 and stays", id));
    if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
  }
  leaving_ = std::move(ranks);
  state_ = PsState::scale_in;
  note("scheduler", fmt::format("HTTP 200: scalein by {} servers", leaving_.size()));
  want_barrier();
}

/// Everybody ends the iteration that is running. In synchronous training a worker ends its iteration only if all others
/// take part in it, so that the one that is farthest ahead counts.
void RunningJob::want_barrier() {
  barrier_wanted_ = true;
  scaling_ = state_;
  stop_step_ = 0;
  for (Worker& worker : workers_) {
    stop_step_ = std::max(stop_step_, worker.step + (worker.running ? 1 : 0));
  }
  for (Worker& worker : workers_) {
    // A worker that waits for slower ones, or for its first step, has no iteration to end.
    if (!worker.running && !worker.finished && (options_.asynchronous || worker.step >= stop_step_)) {
      worker.at_barrier = worker.gated;
    }
  }
  look_at_barrier();
}

void RunningJob::look_at_barrier() {
  if (!barrier_wanted_ || migrating_ || unregistered_ > 0 || !scheduler_alive_ || !all_alive()) return;
  const auto stands = [](const Worker& worker) {
    return (worker.at_barrier || worker.finished) && !worker.prefetching;
  };
  if (!std::ranges::all_of(workers_, stands)) return;
  migrating_ = true;
  note("scheduler", "barrier: all iterations have ended; nodes register anew");
  if (coming_workers_.empty()) {
    redistribute();
  } else {
    empty_caches([this] { redistribute(); });
  }
}

void RunningJob::redistribute() {
  std::vector<Server> servers;
  std::vector<std::uint32_t> server_now(servers_.size(), gone);
  for (std::uint32_t server = 0; server < servers_.size(); ++server) {
    if (std::ranges::find(leaving_, server) != leaving_.end()) continue;
    server_now[server] = static_cast<std::uint32_t>(servers.size());
    servers.push_back({.node = servers_[server].node, .busy = servers_[server].busy});
  }
  const auto by_rank = [this](std::uint32_t node) { return nodes_[node].rank; };
  std::ranges::sort(coming_servers_, {}, by_rank);
  std::ranges::sort(coming_workers_, {}, by_rank);
  for (const std::uint32_t node : std::exchange(coming_servers_, {})) servers.push_back({.node = node});
  const std::vector<PsPiece> after = place(options_.parameters, static_cast<std::uint32_t>(servers.size()));
  const auto next = std::make_shared<std::vector<Server>>(std::move(servers));
  const auto left = std::make_shared<std::size_t>(1);
  const auto arrived = [=, this] {
    if (--*left == 0) rescaled(*next);
  };
  for (const PsMove& move : moves(pieces_, after, server_now)) {
    const Bytes weights = move.elements * sizeof(float);
    outcome_.moved += weights;
    outcome_.moved_state += weights * options_.costs.state_tensors;
    ++*left;
    wire_.send(servers_[move.from].node, (*next)[move.to].node, weights * (1 + options_.costs.state_tensors),
               PsTraffic::migration, arrived);
  }
  always_at(loop_.now() + options_.costs.call, arrived);
}

/// The weights are where they belong.
void RunningJob::rescaled(std::vector<Server>& servers) {
  const std::vector<PsPiece> before = std::exchange(pieces_, {});
  const std::vector<PieceState> old_states = std::exchange(states_, {});
  for (const std::uint32_t server : std::exchange(leaving_, {})) {
    const std::uint32_t node = servers_[server].node;
    note(id_of(node), "leaves");
    outcome_.nodes.push_back(figures_of(node, &servers_[server], nullptr));
    nodes_[node].left = true;
    wire_.kill(node);
    ++lives_[node];
  }
  servers_ = std::move(servers);
  for (std::uint32_t rank = 0; rank < servers_.size(); ++rank) {
    const std::uint32_t node = servers_[rank].node;
    if (nodes_[node].rank == rank) continue;
    note(id_of(node), fmt::format("has rank {} from now on, which was {}", rank, nodes_[node].rank.value()));
    nodes_[node].rank = rank;
  }
  const std::uint32_t step = slowest_step();
  const std::uint32_t old_workers = worker_count();
  for (const std::uint32_t node : std::exchange(coming_workers_, {})) {
    workers_.emplace_back();
    workers_.back().node = node;
    workers_.back().step = step;
    new_caches(workers_.back());
  }
  batches_.clear();  // more workers have other batches
  place_pieces();
  // A piece has the version of what it was cut from; parts of a table that meet have the newest.
  std::vector<std::vector<std::uint64_t>> copies(workers_.size(), std::vector<std::uint64_t>(pieces_.size(), 0));
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    PieceState& state = states_[piece];
    for (std::uint32_t old = 0; old < before.size(); ++old) {
      if (before[old].key != pieces_[piece].key) continue;
      state.version = std::max(state.version, old_states[old].version);
      for (std::uint32_t worker = 0; worker < old_workers; ++worker) {
        state.applied[worker] = std::max(state.applied[worker], old_states[old].applied[worker]);
        copies[worker][piece] = std::max(copies[worker][piece], workers_[worker].version[old]);
      }
    }
    for (std::uint32_t worker = old_workers; worker < workers_.size(); ++worker) {
      state.applied[worker] = step;
      copies[worker][piece] = state.version;
    }
    state.applied_in.assign(workers_.size(), state.version);
  }
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    prepare(workers_[worker]);
    workers_[worker].version = std::move(copies[worker]);
  }
  restart_rounds();
  log({.kind = PsLogEntry::Kind::resize, .worker = worker_count(), .step = step});
  const auto left = std::make_shared<std::size_t>(1);
  const auto ready = [=, this] {
    if (--*left > 0 || !scheduler_alive_) return;
    barrier_wanted_ = migrating_ = false;
    state_ = PsState::ready;
    note("scheduler", fmt::format("scaled: {} servers, {} workers", servers_.size(), workers_.size()));
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      if (!workers_[worker].finished) begin_step(worker);
    }
  };
  for (std::uint32_t worker = old_workers; worker < workers_.size(); ++worker) {
    for (const PsPiece& piece : pieces_) {
      if (options_.parameters[piece.key].rows > 0) continue;
      ++*left;
      wire_.send(servers_[piece.server].node, workers_[worker].node, piece.bytes(), PsTraffic::migration, ready);
    }
  }
  always_at(loop_.now() + options_.costs.call, ready);
}

/// Rounds of all servers from the versions of the pieces: who has an older copy has still to pull.
void RunningJob::restart_rounds() {
  for (std::uint32_t server = 0; server < servers_.size(); ++server) restart_rounds(server);
}

void RunningJob::restart_rounds(std::uint32_t server) {
  std::vector<std::uint64_t> versions;
  std::vector<std::uint32_t> tokens;
  for (const std::uint32_t piece : servers_[server].pieces) {
    versions.push_back(states_[piece].version);
    const auto behind = [&](const Worker& worker) { return worker.version[piece] < states_[piece].version; };
    tokens.push_back(static_cast<std::uint32_t>(std::ranges::count_if(workers_, behind)));
    states_[piece].asking.clear();
  }
  servers_[server].rounds = std::make_unique<SynchronousRounds>(versions, tokens, worker_count());
}

}  // namespace hcclsim::hccl
