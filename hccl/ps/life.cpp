#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// The life of the cluster: nodes register with the scheduler, the job trains when all are there, requests come in, and
// it ends with the last step or with what the cluster cannot get over.
namespace hcclsim::hccl {

void RunningJob::at(Seconds date, std::uint32_t node, std::uint32_t other, std::function<void()> then) {
  if (std::isinf(date)) return;  // a fault holds it for good
  const auto valid = [this, node, other, life = lives_[node], other_life = lives_[other], epoch = epoch_] {
    return !ended_ && epoch == epoch_ && life == lives_[node] && other_life == lives_[other];
  };
  loop_.at(date, {node, 0}, [valid, then = std::move(then)] {
    if (valid()) then();
  });
}

void RunningJob::always_at(Seconds date, std::function<void()> then) {
  loop_.at(date, {0, 0}, [this, then = std::move(then)] {
    if (!ended_) then();
  });
}

void RunningJob::note(const std::string& node, std::string what) {
  outcome_.events.push_back({loop_.now(), node, std::move(what), state_});
}

void RunningJob::log(PsLogEntry entry) {
  if (!options_.keep_log) return;
  entry.date = loop_.now();
  outcome_.log.push_back(std::move(entry));
}

std::optional<std::uint32_t> RunningJob::node_of(PsNodeName name) const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].left && nodes_[node].name == name) return node;
  }
  return std::nullopt;
}

bool RunningJob::nodes_alive() const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].left && !wire_.alive(node)) return false;
  }
  return true;
}

bool RunningJob::all_alive() const { return nodes_alive() && std::ranges::none_of(servers_, &Server::restoring); }

std::uint32_t RunningJob::next_number(PsRole role) const {
  const auto plays = [role](const NodeLife& node) { return node.name.role == role; };
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, plays));
}

std::uint32_t RunningJob::next_rank(PsRole role) const {
  const auto has_one = [role](const NodeLife& node) {
    return node.name.role == role && node.rank.has_value() && !node.left;
  };
  return static_cast<std::uint32_t>(std::ranges::count_if(nodes_, has_one));
}

std::uint32_t RunningJob::add_node(PsRole role, PsHost host, Seconds delay) {
  const PsNodeName name{role, next_number(role)};
  const std::uint32_t node = wire_.add_node(host);
  nodes_.push_back({.name = name});
  lives_.push_back(0);
  ++unregistered_;
  const auto late = options_.node_delays.find(to_string(name));
  if (late != options_.node_delays.end()) delay += late->second;
  Seconds begin = loop_.now() + delay;
  if (faults_ != nullptr && !host.cpu) begin = std::max(begin, faults_->begins(host.number));
  always_at(begin + options_.costs.call, [this, node] {
    if (wire_.alive(node)) registered(node);
  });
  return node;
}

void RunningJob::start() {
  note("scheduler", "starts");
  checkpoint_.step = options_.first_step;
  for (const PsHost& host : options_.servers) {
    servers_.emplace_back();
    servers_.back().node = add_node(PsRole::server, host, 0);
  }
  for (std::uint32_t number = 0; number < options_.workers.size(); ++number) {
    workers_.emplace_back();
    workers_.back().node = add_node(PsRole::worker, options_.workers[number], options_.skew.start(number));
    workers_.back().step = options_.first_step;
  }
  place_pieces();
  for (Worker& worker : workers_) {
    prepare(worker);
    new_caches(worker);
  }
  always_at(options_.times.cluster_timeout, [this] {
    if (state_ != PsState::starting) return;
    end_job(fmt::format("{} of {} nodes have not registered within {} s", unregistered_, nodes_.size(),
                        options_.times.cluster_timeout));
  });
  for (const PsRequest& request : options_.requests) {
    always_at(request.date, [this, &request] { handle(request); });
  }
  for (const PsFailure& failure : options_.failures) {
    always_at(failure.date, [this, &failure] { fail(failure); });
  }
}

/// A worker that has done nothing yet on the pieces as they are placed now; what its caches hold stays.
void RunningJob::prepare(Worker& worker) {
  worker.doing.assign(pieces_.size(), Doing::nothing);
  worker.version.resize(pieces_.size(), 0);
  worker.running = worker.gated = worker.at_barrier = worker.awaits_rows = false;
  worker.prefetching = worker.prefetch_waits = false;
  worker.initial.clear();
}

void RunningJob::registered(std::uint32_t node) {
  if (!scheduler_alive_) {
    note(id_of(node), "finds no scheduler to register with");
    return;
  }
  nodes_[node].rank = next_rank(nodes_[node].name.role);
  nodes_[node].registered = true;
  nodes_[node].born = loop_.now();
  --unregistered_;
  note(id_of(node), fmt::format("registers with rank {}", *nodes_[node].rank));
  if (unregistered_ > 0) return;
  if (state_ != PsState::starting) {
    look_at_barrier();
    return;
  }
  take_ranks();
  state_ = PsState::ready;
  outcome_.ready = loop_.now();
  note("scheduler", fmt::format("all {} nodes have registered", nodes_.size()));
  always_at(loop_.now() + options_.costs.call, [this] { send_initial_weights(); });
}

/// All have registered: from now on every node does what is of its rank.
void RunningJob::take_ranks() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const std::uint32_t rank = nodes_[node].rank.value();
    (nodes_[node].name.role == PsRole::server ? servers_[rank].node : workers_[rank].node) = node;
  }
}

/// Every worker sends all weights; a server keeps those that come first. A worker begins when its own are there.
void RunningJob::send_initial_weights() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    Worker& me = workers_[worker];
    went_on(worker);
    me.initial.assign(pieces_.size(), true);
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
      if (options_.parameters[pieces_[piece].key].rows > 0 && options_.embeddings.init_in_server) {
        me.initial[piece] = false;
        continue;
      }
      wire_.send(me.node, server_of(piece).node, pieces_[piece].bytes(), PsTraffic::initial_weights,
                 [=, this] { initial_weights_arrived(worker, piece); });
    }
    if (std::ranges::find(me.initial, true) != me.initial.end()) continue;
    me.initial.clear();
    at(loop_.now(), me.node, [this, worker] { begin_step(worker); });
  }
}

/// … or the server has them from another worker's copy.
void RunningJob::initial_weights_arrived(std::uint32_t worker, std::uint32_t piece) {
  Worker& me = workers_[worker];
  if (me.initial.empty()) return;
  me.initial[piece] = false;
  if (std::ranges::find(me.initial, true) != me.initial.end()) return;
  me.initial.clear();
  went_on(worker);
  at(loop_.now() + options_.costs.call, me.node, [this, worker] { begin_step(worker); });
}

Seconds RunningJob::end_of_work(std::uint32_t node, Seconds start, Seconds work, bool kernel) const {
  const PsHost host = wire_.host(node);
  if (faults_ == nullptr || host.cpu) return start + work;
  return kernel ? faults_->end_of_kernel(host.number, start, work) : faults_->end_of_task(host.number, start, work);
}

/// Addresses are made up, one for each server of the platform and a port for each node, and stay the same.
std::string RunningJob::nodes_answer() const {
  constexpr std::uint32_t first_port = 10000;
  constexpr std::uint32_t per_byte = 254;
  std::string list;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const NodeLife& one = nodes_[node];
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

void RunningJob::handle(const PsRequest& request) {
  if (!scheduler_alive_) {
    note("client", fmt::format("{}: connection refused", name_of(request.kind)));
    return;
  }
  const auto refuse = [this](const std::string& why) { note("scheduler", "HTTP 400: " + why); };
  switch (request.kind) {
    case PsRequest::Kind::state:
      note("scheduler", fmt::format("HTTP 200: state {}", name_of(state_)));
      return;
    case PsRequest::Kind::nodes:
      note("scheduler", "HTTP 200: " + nodes_answer());
      return;
    case PsRequest::Kind::scale_out:
    case PsRequest::Kind::scale_in:
      break;
  }
  const bool out = request.kind == PsRequest::Kind::scale_out;
  if (state_ != PsState::ready) {
    refuse(fmt::format("{} while the cluster is {}", name_of(request.kind), name_of(state_)));
  } else if (out) {
    scale_out(request);
  } else {
    scale_in(request);
  }
}

void RunningJob::finish_worker(std::uint32_t worker) {
  workers_[worker].finished = true;
  if (std::ranges::all_of(workers_, &Worker::finished)) {
    end_job("");
  } else if (barrier_wanted_) {
    look_at_barrier();
  }
}

void RunningJob::end_job(std::string failure) {
  state_ = PsState::exit;
  note(scheduler_alive_ ? "scheduler" : "nodes",
       failure.empty() ? "all workers have done their steps" : failure + "; all nodes exit");
  outcome_.failure = std::move(failure);
  outcome_.end = loop_.now();
  ended_ = true;
  wire_.forget_all();
}

}  // namespace hcclsim::hccl
