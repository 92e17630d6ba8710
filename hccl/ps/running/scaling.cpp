#include "hccl/ps/running/scaling.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

void PsScaling::place() {
  take_places({}, static_cast<std::uint32_t>(options_.servers.size()),
              static_cast<std::uint32_t>(options_.workers.size()), options_.first_step);
}

/// Workers that are new begin with a step.
void PsScaling::take_places(const std::vector<std::uint32_t>& server_now, std::uint32_t servers, std::uint32_t workers,
                            std::uint32_t step) {
  const std::vector<PsPiece> before = servers_.pieces();
  servers_.place(server_now, servers);
  progress_.resize(workers, step);
  steps_.take_places(before, step);
}

void PsScaling::scale_out(const PsRequest& request) {
  if (request.servers == 0 && request.workers == 0) {
    members_.note("scheduler", "HTTP 400: scaleout of no node");
    return;
  }
  members_.enter(PsState::scale_out,
                 fmt::format("HTTP 200: scaleout by {} servers and {} workers", request.servers, request.workers));
  for (std::uint32_t i = 0; i < request.servers; ++i) {
    coming_servers_.push_back(
        members_.add(PsRole::server, options_.spare_servers.at(used_servers_++), options_.node_start));
  }
  for (std::uint32_t i = 0; i < request.workers; ++i) {
    coming_workers_.push_back(
        members_.add(PsRole::worker, options_.spare_workers.at(used_workers_++), options_.node_start));
  }
  timeline_.always_at(timeline_.now() + options_.times.cluster_timeout, [this] {
    if (members_.unregistered() == 0) return;
    members_.end_job(fmt::format("{} new nodes have not registered", members_.unregistered()));
  });
  want_barrier();
}

void PsScaling::scale_in(const PsRequest& request) {
  const auto refuse = [this](const std::string& why) { members_.note("scheduler", "HTTP 400: " + why); };
  if (request.nodes.empty()) return refuse("scalein of no node");
  std::vector<std::uint32_t> ranks;
  for (const std::string& id : request.nodes) {
    const std::optional<PsNodeName> name = parse_node_name(id);
    const std::optional<std::uint32_t> node = name.has_value() ? members_.find(*name) : std::nullopt;
    if (!node.has_value()) {
      return refuse(fmt::format("scalein: there is no node {}", id));
    }
    if (name->role == PsRole::worker) return refuse(fmt::format("scalein: {} is a worker, which stays", id));
    const std::uint32_t rank = members_.of(*node).rank.value();
    if (rank == 0) return refuse(fmt::format("scalein: {} has rank 0 and stays", id));
    if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
  }
  leaving_ = std::move(ranks);
  members_.enter(PsState::scale_in, fmt::format("HTTP 200: scalein by {} servers", leaving_.size()));
  want_barrier();
}

void PsScaling::want_barrier() {
  scaling_ = members_.state();
  steps_.stop();
  look_at_barrier();
}

void PsScaling::look_at_barrier() {
  if (!steps_.stopping() || migrating_ || members_.unregistered() > 0 || !members_.scheduler_alive()) return;
  if (!members_.all_alive() || servers_.any_restoring() || !steps_.all_stand()) return;
  migrating_ = true;
  members_.note("scheduler", "barrier: all iterations have ended; nodes register anew");
  if (coming_workers_.empty()) {
    redistribute();
  } else {
    rows_.empty_caches([this] { redistribute(); });
  }
}

bool PsScaling::needs(std::uint32_t node) const {
  return migrating_ || std::ranges::find(coming_servers_, node) != coming_servers_.end() ||
         std::ranges::find(coming_workers_, node) != coming_workers_.end();
}

void PsScaling::redistribute() {
  std::vector<std::uint32_t> nodes;  // of the servers, by their new ranks
  std::vector<std::uint32_t> server_now(servers_.count(), gone);
  for (std::uint32_t server = 0; server < servers_.count(); ++server) {
    if (std::ranges::find(leaving_, server) != leaving_.end()) continue;
    server_now[server] = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(members_.server(server));
  }
  const auto by_rank = [this](std::uint32_t node) { return members_.of(node).rank; };
  std::ranges::sort(coming_servers_, {}, by_rank);
  std::ranges::sort(coming_workers_, {}, by_rank);
  for (const std::uint32_t node : std::exchange(coming_servers_, {})) nodes.push_back(node);
  const Countdown arrived([=, this] { rescaled(server_now, nodes); });
  const std::vector<PsPiece> after = hccl::place(options_.parameters, static_cast<std::uint32_t>(nodes.size()));
  for (const PsMove& move : moves(servers_.pieces(), after, server_now)) {
    const Bytes weights = move.elements * sizeof(float);
    outcome_.moved += weights;
    outcome_.moved_state += weights * options_.costs.state_tensors;
    arrived.begin();
    timeline_.send(members_.server(move.from), nodes[move.to], weights * (1 + options_.costs.state_tensors),
                   PsTraffic::migration, arrived);
  }
  timeline_.always_at(timeline_.now() + options_.costs.call, arrived);
}

/// The weights are where they belong.
void PsScaling::rescaled(const std::vector<std::uint32_t>& server_now, const std::vector<std::uint32_t>& nodes) {
  for (const std::uint32_t server : std::exchange(leaving_, {})) {
    members_.leave(members_.server(server));
    outcome_.nodes.push_back(members_.figures(members_.server(server)));
    outcome_.nodes.back().busy = servers_.busy(server);
  }
  members_.set_servers(nodes);
  const std::uint32_t step = progress_.slowest_step();
  const std::uint32_t old_workers = progress_.workers();
  for (const std::uint32_t node : coming_workers_) members_.add_worker(node);
  const auto added = static_cast<std::uint32_t>(std::exchange(coming_workers_, {}).size());
  take_places(server_now, static_cast<std::uint32_t>(nodes.size()), old_workers + added, step);
  timeline_.log({.kind = PsLogEntry::Kind::resize, .worker = progress_.workers(), .step = step});
  start_workers(old_workers);
}

/// New workers, from the first one on, get all weights; then the job goes on.
void PsScaling::start_workers(std::uint32_t first) {
  const Countdown ready([this] {
    if (!members_.scheduler_alive()) return;
    migrating_ = false;
    members_.enter(PsState::ready,
                   fmt::format("scaled: {} servers, {} workers", servers_.count(), progress_.workers()));
    steps_.go_on();
  });
  for (std::uint32_t worker = first; worker < progress_.workers(); ++worker) {
    for (const PsPiece& piece : servers_.pieces()) {
      if (options_.parameters[piece.key].rows > 0) continue;
      ready.begin();
      timeline_.send(members_.server(piece.server), members_.worker(worker), piece.bytes(), PsTraffic::migration,
                     ready);
    }
  }
  timeline_.always_at(timeline_.now() + options_.costs.call, ready);
}

}  // namespace hcclsim::hccl
