#include "hccl/ps/running/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// Tensors that pass through memory for each element of a gradient that is added: two are read, one is written.
constexpr std::uint32_t tensors_of_addition = 3;
/// … that is applied: gradient, weight and states are read, weight and states are written.
constexpr std::uint32_t tensors_of_update(std::uint32_t states) { return 3 + 2 * states; }

}  // namespace

void PsExchange::begin(std::uint32_t worker) {
  Worker& me = workers_[worker];
  me.doing.assign(pieces_.size(), Doing::nothing);
  me.held = 0;
  me.left = 0;
  for (std::uint32_t server = 0; server < servers_.count(); ++server) me.left += servers_.pieces_of(server).size();
}

void PsExchange::gradient_ready(std::uint32_t worker, std::uint32_t key) {
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    if (servers_.piece(piece).key == key) want(worker, piece);
  }
}

/// The worker wants to push a piece; so does one whose server has come back without it.
void PsExchange::want(std::uint32_t worker, std::uint32_t piece) {
  workers_[worker].doing[piece] = Doing::pushing;
  if (!servers_.usable(piece)) return;  // asked again when it is back
  if (options_.asynchronous) {
    push(worker, piece);
  } else {
    ask(worker, piece, false);
  }
}

/// The worker asks whether it may push or pull, and goes on asking until it may.
void PsExchange::ask(std::uint32_t worker, std::uint32_t piece, bool pull) {
  const std::uint32_t node = members_.worker(worker);
  const std::uint32_t server = servers_.node_of(piece);
  const Seconds period = timeline_.way_and_back(node, server) + options_.costs.poll;
  timeline_.tell(node, server, [=, this] {
    pieces_[piece].asking.push_back({worker, timeline_.now(), period, pull});
    answer_ready(piece);
  });
}

/// Whoever may push or pull now hears so when it asks next.
void PsExchange::answer_ready(std::uint32_t piece) {
  Piece& state = pieces_[piece];
  const SynchronousRounds& rounds = rounds_of(piece);
  const std::uint32_t server = servers_.node_of(piece);
  for (const Asking& one : std::exchange(state.asking, {})) {
    const bool ready = one.pull ? rounds.ready_for_pull(state.place) : rounds.ready_for_push(state.place, one.worker);
    if (!ready) {
      state.asking.push_back(one);
      continue;
    }
    const double questions = std::ceil((timeline_.now() - one.first) / one.period);
    const Seconds date = std::max(timeline_.now(), one.first + questions * one.period);
    workers_[one.worker].held += date - one.first;
    const std::uint32_t node = members_.worker(one.worker);
    timeline_.at(date, server, node, [=, this] {
      if (one.pull) {
        serve_pull(one.worker, piece);
      } else {
        timeline_.tell(server, node, [=, this] { push(one.worker, piece); });
      }
    });
  }
}

/// Of a table: ids and rows.
void PsExchange::push(std::uint32_t worker, std::uint32_t piece) {
  const PsParameter& parameter = servers_.parameter_of(piece);
  const Bytes bytes = parameter.rows == 0
                          ? servers_.piece(piece).bytes()
                          : pushed_rows(piece, gradient_of(worker)) * (parameter.width() + 1) * sizeof(float);
  timeline_.send(members_.worker(worker), servers_.node_of(piece), bytes, PsTraffic::push,
                 [=, this] { push_arrived(worker, piece); });
}

std::uint64_t PsExchange::pushed_rows(std::uint32_t piece, const PsContribution& one) const {
  const auto& rows = batches_.of(servers_.parameter_of(piece).rows, one.worker, one.step);
  return servers_.rows_by_server(servers_.piece(piece).key, rows)[servers_.piece(piece).server].size();
}

/// All of a dense piece, rows of a table.
std::uint64_t PsExchange::pushed_elements(std::uint32_t piece, const PsContribution& one) const {
  const PsParameter& parameter = servers_.parameter_of(piece);
  return parameter.rows == 0 ? servers_.piece(piece).elements : pushed_rows(piece, one) * parameter.width();
}

/// An optimizer without states moves those rows of a table alone that have gradients; one with states moves them all.
std::uint64_t PsExchange::update_bytes(std::uint32_t piece, std::span<const PsContribution> contributions) const {
  std::uint64_t elements = servers_.piece(piece).elements;
  if (servers_.parameter_of(piece).rows > 0 && options_.costs.state_tensors == 0) {
    elements = 0;
    for (const PsContribution& one : contributions) elements += pushed_elements(piece, one);
  }
  return elements * sizeof(float) * tensors_of_update(options_.costs.state_tensors);
}

void PsExchange::push_arrived(std::uint32_t worker, std::uint32_t piece) {
  const PsContribution gradient = gradient_of(worker);
  servers_.work(servers_.piece(piece).server,
                options_.asynchronous ? update_bytes(piece, std::span(&gradient, 1))
                                      : pushed_elements(piece, gradient) * sizeof(float) * tensors_of_addition,
                [=, this] { accumulated(worker, piece); });
}

void PsExchange::accumulated(std::uint32_t worker, std::uint32_t piece) {
  if (options_.asynchronous) {
    count_staleness(pieces_[piece].version - workers_[worker].version[piece]);
    apply(piece, {gradient_of(worker)});
  } else {
    const std::uint32_t server = servers_.piece(piece).server;
    for (const std::size_t place : rounds_[server].push(pieces_[piece].place, gradient_of(worker))) {
      const std::uint32_t updated = servers_.pieces_of(server)[place];
      servers_.work(server, update_bytes(updated, rounds_[server].pushed(place)), [=, this] {
        apply(updated, rounds_[server].pushed(place));
        rounds_[server].updated(place);
        // With the last piece of the round pushes of the others may be ready too.
        for (const std::uint32_t other : servers_.pieces_of(server)) answer_ready(other);
      });
    }
  }
  timeline_.tell(servers_.node_of(piece), members_.worker(worker), [=, this] { acknowledged(worker, piece); });
}

void PsExchange::apply(std::uint32_t piece, std::vector<PsContribution> contributions) {
  Piece& state = pieces_[piece];
  ++state.version;
  for (const PsContribution& one : contributions) {
    state.applied[one.worker] = one.step + 1;
    state.applied_in[one.worker] = state.version;
  }
  log(piece, {.kind = PsLogEntry::Kind::update, .version = state.version, .contributions = std::move(contributions)});
}

void PsExchange::count_staleness(std::uint64_t updates) {
  if (staleness_.size() <= updates) staleness_.resize(updates + 1, 0);
  ++staleness_[updates];
}

void PsExchange::acknowledged(std::uint32_t worker, std::uint32_t piece) {
  workers_[worker].doing[piece] = Doing::pulling;
  progress_.went_on(worker);
  if (!servers_.usable(piece)) return;
  if (options_.asynchronous) {
    timeline_.tell(members_.worker(worker), servers_.node_of(piece), [=, this] { serve_pull(worker, piece); });
  } else {
    ask(worker, piece, true);
  }
}

void PsExchange::serve_pull(std::uint32_t worker, std::uint32_t piece) {
  const std::uint64_t version = pieces_[piece].version;
  log(piece, {.kind = PsLogEntry::Kind::serve, .worker = worker, .step = progress_.step(worker), .version = version});
  if (!options_.asynchronous) {
    rounds_of(piece).pull(pieces_[piece].place);
    answer_ready(piece);
  }
  const std::uint32_t server = servers_.node_of(piece);
  const std::uint32_t node = members_.worker(worker);
  const auto arrival = [=, this] { pulled(worker, piece, version); };
  if (servers_.parameter_of(piece).rows > 0) {
    timeline_.tell(server, node, arrival);  // rows come when they are looked up
  } else {
    timeline_.send(server, node, servers_.piece(piece).bytes(), PsTraffic::pull, arrival);
  }
}

void PsExchange::pulled(std::uint32_t worker, std::uint32_t piece, std::uint64_t version) {
  Worker& me = workers_[worker];
  me.doing[piece] = Doing::done;
  progress_.went_on(worker);
  me.version[piece] = version;
  --me.left;
  log(piece, {.kind = PsLogEntry::Kind::pull, .worker = worker, .step = progress_.step(worker), .version = version});
  pulled_(worker);
}

void PsExchange::log(std::uint32_t piece, PsLogEntry entry) {
  entry.key = servers_.piece(piece).key;
  entry.first = servers_.piece(piece).first;
  entry.elements = servers_.piece(piece).elements;
  timeline_.log(std::move(entry));
}

void PsExchange::save() {
  saved_step_ = progress_.step(0);
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    saved_versions_[servers_.piece(piece).key] = workers_[0].version[piece];
  }
}

void PsExchange::go_back() {
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    Piece& state = pieces_[piece];
    const auto saved = saved_versions_.find(servers_.piece(piece).key);
    state.version = saved == saved_versions_.end() ? 0 : saved->second;
    state.applied.assign(workers_.size(), saved_step_);
    state.applied_in.assign(workers_.size(), state.version);
    for (Worker& worker : workers_) {
      worker.doing[piece] = Doing::nothing;
      worker.version[piece] = state.version;
    }
  }
  restart_rounds();
}

std::uint32_t PsExchange::newest_copy(std::uint32_t piece) const {
  std::uint32_t best = 0;
  for (std::uint32_t worker = 1; worker < workers_.size(); ++worker) {
    if (workers_[worker].version[piece] > workers_[best].version[piece]) best = worker;
  }
  return best;
}

void PsExchange::restore(std::uint32_t server) {
  for (const std::uint32_t piece : servers_.pieces_of(server)) {
    Piece& state = pieces_[piece];
    const std::uint32_t source = newest_copy(piece);
    state.version = workers_[source].version[piece];
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      // A gradient that came in a later version is not in this one; its worker still has it.
      if (state.applied_in[worker] > state.version) state.applied[worker] = progress_.step(worker);
      state.applied_in[worker] = std::min(state.applied_in[worker], state.version);
    }
    log(piece, {.kind = PsLogEntry::Kind::restore, .worker = source, .version = state.version});
  }
  restart_rounds(server);
}

void PsExchange::go_on_with(std::uint32_t server) {
  for (const std::uint32_t piece : servers_.pieces_of(server)) {
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      const Doing doing = workers_[worker].doing[piece];
      if (doing != Doing::pushing && doing != Doing::pulling) continue;
      if (pieces_[piece].applied[worker] > progress_.step(worker)) {
        acknowledged(worker, piece);
      } else {
        want(worker, piece);
      }
    }
  }
}

/// A piece has the version of what it was cut from; parts of a table that meet have the newest.
void PsExchange::take_places(std::span<const PsPiece> before, std::uint32_t step) {
  const std::size_t count = servers_.pieces().size();
  const std::vector<Piece> old_pieces = std::exchange(pieces_, std::vector<Piece>(count));
  const std::vector<Worker> old_workers = std::exchange(workers_, std::vector<Worker>(progress_.workers()));
  for (Worker& worker : workers_) {
    worker.doing.assign(count, Doing::nothing);
    worker.version.assign(count, 0);
  }
  for (std::uint32_t piece = 0; piece < count; ++piece) {
    Piece& state = pieces_[piece];
    state.applied.assign(workers_.size(), 0);
    for (std::uint32_t old = 0; old < before.size(); ++old) {
      if (before[old].key != servers_.piece(piece).key) continue;
      state.version = std::max(state.version, old_pieces[old].version);
      for (std::uint32_t worker = 0; worker < old_workers.size(); ++worker) {
        std::uint64_t& version = workers_[worker].version[piece];
        state.applied[worker] = std::max(state.applied[worker], old_pieces[old].applied[worker]);
        version = std::max(version, old_workers[worker].version[old]);
      }
    }
    for (std::size_t worker = old_workers.size(); worker < workers_.size(); ++worker) {
      state.applied[worker] = step;
      workers_[worker].version[piece] = state.version;
    }
    state.applied_in.assign(workers_.size(), state.version);
  }
  restart_rounds();
}

/// Rounds of all servers from the versions of the pieces: who has an older copy has still to pull.
void PsExchange::restart_rounds() {
  rounds_.assign(servers_.count(), SynchronousRounds(0, 0));
  for (std::uint32_t server = 0; server < servers_.count(); ++server) restart_rounds(server);
}

void PsExchange::restart_rounds(std::uint32_t server) {
  std::vector<std::uint64_t> versions;
  std::vector<std::uint32_t> tokens;
  for (const std::uint32_t piece : servers_.pieces_of(server)) {
    Piece& state = pieces_[piece];
    const auto behind = [&](const Worker& worker) { return worker.version[piece] < state.version; };
    state.place = static_cast<std::uint32_t>(versions.size());
    versions.push_back(state.version);
    tokens.push_back(static_cast<std::uint32_t>(std::ranges::count_if(workers_, behind)));
    state.asking.clear();
  }
  rounds_[server] = SynchronousRounds(versions, tokens, progress_.workers());
}

}  // namespace hcclsim::hccl
