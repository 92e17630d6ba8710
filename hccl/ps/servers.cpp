#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// What servers do: they answer who asks whether a push or a pull is ready, add up what is pushed, run the optimizer and
// send weights. A server does one addition or update at a time.
namespace hcclsim::hccl {
namespace {

/// Tensors that pass through memory for each element of a gradient that is added: two are read, one is written.
constexpr std::uint32_t tensors_of_addition = 3;
/// … that is applied: gradient, weight and states are read, weight and states are written.
constexpr std::uint32_t tensors_of_update(std::uint32_t states) { return 3 + 2 * states; }

}  // namespace

void RunningJob::place_pieces() {
  pieces_ = place(options_.parameters, static_cast<std::uint32_t>(servers_.size()));
  states_.assign(pieces_.size(), {});
  for (Server& server : servers_) server.pieces.clear();
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    states_[piece].applied.assign(workers_.size(), 0);
    states_[piece].applied_in.assign(workers_.size(), 0);
    if (on_device(pieces_[piece].key)) continue;  // its rows are trained in caches: nobody pushes it
    Server& server = servers_[pieces_[piece].server];
    states_[piece].place = static_cast<std::uint32_t>(server.pieces.size());
    server.pieces.push_back(piece);
  }
  for (Server& server : servers_) {
    server.rounds = std::make_unique<SynchronousRounds>(server.pieces.size(), worker_count());
  }
}

void RunningJob::work(std::uint32_t server, Seconds time, std::function<void()> done) {
  Server& me = servers_[server];
  me.free_at = end_of_work(me.node, std::max(me.free_at, loop_.now()), time, false);
  me.busy += time;
  at(me.free_at, me.node, std::move(done));
}

/// A pass of so many tensors over elements.
Seconds RunningJob::memory_time(std::uint64_t elements, std::uint32_t tensors) const {
  return static_cast<double>(elements * sizeof(float) * tensors) / options_.costs.server_bandwidth;
}

/// All of a dense piece, rows of a table.
std::uint64_t RunningJob::pushed_elements(std::uint32_t piece, std::uint32_t worker) const {
  const PsParameter& parameter = options_.parameters[pieces_[piece].key];
  if (parameter.rows == 0) return pieces_[piece].elements;
  return push_bytes(worker, piece) / ((parameter.width() + 1) * sizeof(float)) * parameter.width();
}

/// An optimizer without states moves those rows of a table alone that have gradients; one with states moves them all.
Seconds RunningJob::update_time(std::uint32_t piece, std::span<const PsContribution> contributions) const {
  std::uint64_t elements = pieces_[piece].elements;
  if (options_.parameters[pieces_[piece].key].rows > 0 && options_.costs.state_tensors == 0) {
    elements = 0;
    for (const PsContribution& one : contributions) elements += pushed_elements(piece, one.worker);
  }
  return memory_time(elements, tensors_of_update(options_.costs.state_tensors));
}

/// The worker asks whether it may push or pull, and goes on asking until it may.
void RunningJob::ask(std::uint32_t worker, std::uint32_t piece, bool pull) {
  const std::uint32_t node = workers_[worker].node;
  const std::uint32_t server = server_of(piece).node;
  const Seconds way = wire_.control_time(node, server);
  tell(node, server, [=, this] {
    states_[piece].asking.push_back({worker, loop_.now(), 2 * way + options_.costs.poll, pull});
    answer_ready(piece);
  });
}

/// Whoever may push or pull now hears so when it asks next.
void RunningJob::answer_ready(std::uint32_t piece) {
  if (states_[piece].asking.empty()) return;
  const SynchronousRounds& rounds = *server_of(piece).rounds;
  const std::uint32_t place = states_[piece].place;
  std::vector<Asking> waiting;
  for (const Asking& one : std::exchange(states_[piece].asking, {})) {
    const bool ready = one.pull ? rounds.ready_for_pull(place) : rounds.ready_for_push(place, one.worker);
    if (!ready) {
      waiting.push_back(one);
      continue;
    }
    const double questions = std::ceil((loop_.now() - one.first) / one.period);
    const Seconds date = std::max(loop_.now(), one.first + questions * one.period);
    workers_[one.worker].figures.held += date - one.first;
    const std::uint32_t node = workers_[one.worker].node;
    const std::uint32_t server = server_of(piece).node;
    at(date, server, node, [=, this] {
      if (one.pull) {
        serve_pull(one.worker, piece);
      } else {
        tell(server, node, [=, this] { push(one.worker, piece); });
      }
    });
  }
  states_[piece].asking = std::move(waiting);
}

void RunningJob::serve_pull(std::uint32_t worker, std::uint32_t piece) {
  Server& server = server_of(piece);
  const std::uint64_t version = states_[piece].version;
  const std::uint32_t node = workers_[worker].node;
  log({.kind = PsLogEntry::Kind::serve,
       .worker = worker,
       .step = workers_[worker].step,
       .key = pieces_[piece].key,
       .first = pieces_[piece].first,
       .elements = pieces_[piece].elements,
       .version = version});
  if (!options_.asynchronous) {
    server.rounds->pull(states_[piece].place);
    answer_ready(piece);
  }
  const auto arrival = [=, this] { pulled(worker, piece, version); };
  if (options_.parameters[pieces_[piece].key].rows > 0) {
    tell(server.node, node, arrival);  // rows come when they are looked up
  } else {
    wire_.send(server.node, node, pieces_[piece].bytes(), PsTraffic::pull, arrival);
  }
}

void RunningJob::push_arrived(std::uint32_t worker, std::uint32_t piece) {
  const std::uint32_t server = pieces_[piece].server;
  const PsContribution contribution{worker, workers_[worker].step};
  const Seconds time = options_.asynchronous ? update_time(piece, std::span(&contribution, 1))
                                             : memory_time(pushed_elements(piece, worker), tensors_of_addition);
  work(server, time, [=, this] { accumulated(worker, piece); });
}

void RunningJob::accumulated(std::uint32_t worker, std::uint32_t piece) {
  Server& server = server_of(piece);
  const std::uint32_t node = workers_[worker].node;
  const PsContribution contribution{worker, workers_[worker].step};
  if (options_.asynchronous) {
    count_staleness(states_[piece].version - workers_[worker].version[piece]);
    apply(piece, {contribution});
  } else {
    for (const std::size_t place : server.rounds->push(states_[piece].place, contribution)) {
      const std::uint32_t updated = server.pieces[place];
      work(pieces_[piece].server, update_time(updated, server.rounds->pushed(place)), [=, this] {
        SynchronousRounds& rounds = *server_of(updated).rounds;
        apply(updated, rounds.pushed(place));
        rounds.updated(place);
        // With the last piece of the round pushes of the others may be ready too.
        for (const std::uint32_t other : std::vector(server_of(updated).pieces)) answer_ready(other);
      });
    }
  }
  tell(server.node, node, [=, this] { acknowledged(worker, piece); });
}

void RunningJob::apply(std::uint32_t piece, std::vector<PsContribution> contributions) {
  PieceState& state = states_[piece];
  ++state.version;
  for (const PsContribution& one : contributions) {
    state.applied[one.worker] = one.step + 1;
    state.applied_in[one.worker] = state.version;
  }
  log({.kind = PsLogEntry::Kind::update,
       .key = pieces_[piece].key,
       .first = pieces_[piece].first,
       .elements = pieces_[piece].elements,
       .version = state.version,
       .contributions = std::move(contributions)});
}

void RunningJob::count_staleness(std::uint64_t updates) {
  if (outcome_.staleness.size() <= updates) outcome_.staleness.resize(updates + 1, 0);
  ++outcome_.staleness[updates];
}

}  // namespace hcclsim::hccl
