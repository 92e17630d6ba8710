#include "hccl/ps/simulation.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

namespace hcclsim::hccl {
namespace {

void check(const sim::Cluster& cluster, const PsOptions& options) {
  if (options.workers.empty() || options.servers.empty()) {
    bad_input("option", "{} workers and {} servers: parameter servers need at least one of each",
              options.workers.size(), options.servers.size());
  }
  if (options.steps <= options.first_step || options.parameters.empty()) {
    internal_error("a job without steps or parameters");
  }
  for (const auto* hosts : {&options.workers, &options.servers, &options.spare_workers, &options.spare_servers}) {
    for (const PsHost& host : *hosts) {
      if (host.cpu || host.number < cluster.size()) continue;
      bad_input("option", "NPU {} is none of the platform's {}", host.number, cluster.size());
    }
  }
  for (const auto& [id, delay] : options.node_delays) {
    const std::optional<PsNodeName> node = parse_node_name(id);
    const bool server = node.has_value() && node->role == PsRole::server;
    const std::size_t nodes = server ? options.servers.size() + options.spare_servers.size()
                                     : options.workers.size() + options.spare_workers.size();
    if (node.has_value() && node->role != PsRole::scheduler && node->number < nodes) continue;
    bad_input("option", "--node-delay: there is no node {}; the last {} is number {}", id, server ? "server" : "worker",
              nodes - 1);
  }
  if (options.times.node_timeout <= options.times.heartbeat) {
    bad_input("option", "a node time-out of {} s: heartbeats come every {} s; give more (--node-timeout)",
              options.times.node_timeout, options.times.heartbeat);
  }
  if (!(options.costs.server_bandwidth > 0)) internal_error("servers without memory bandwidth");
}

}  // namespace

RunningJob::RunningJob(sim::Cluster& cluster, const models::Program& program, const PsOptions& options,
                       sim::EventLoop& loop, sim::Network& network, const HybridSetup* hybrid)
    : cluster_(cluster),
      options_(options),
      faults_(options.faults.get()),
      loop_(loop),
      wire_(loop, network, cluster, options.costs.call, faults_) {
  if (hybrid != nullptr) {
    hybrid_ = std::make_unique<HybridReduction>(*hybrid, loop, network, cluster);
    hybrid_gradients_ = hybrid->gradients;
    hybrid_update_ = hybrid->update;
  }
  prepare_program(program);
}

PsNodeFigures RunningJob::figures_of(std::uint32_t node, const Server* server, const Worker* worker) const {
  const PsWire::NodeBytes& bytes = wire_.bytes(node);
  PsNodeFigures figures{.name = id_of(node),
                        .rank = nodes_[node].rank,
                        .server = nodes_[node].name.role == PsRole::server,
                        .host = wire_.host(node),
                        .sent = bytes.sent,
                        .received = bytes.received,
                        .lost = bytes.lost};
  if (server != nullptr) {
    figures.busy = server->busy;
    for (const PsPiece& piece : pieces_) {
      if (servers_[piece.server].node == node) figures.placed += piece.bytes();
    }
  }
  if (worker != nullptr) figures.waited = worker->waited;
  return figures;
}

/// Over the whole of the training, also for nodes that have left: links are of hosts, which others may use.
void RunningJob::add_links(std::uint32_t node, PsNodeFigures& figures) {
  const Seconds time = outcome_.end - outcome_.ready;
  const auto add = [&](sim::LinkId id, bool in) {
    const double carried = wire_.link_bytes()[id];
    const BytesPerSecond capacity = cluster_.capacity(id);
    figures.links.push_back(
        {cluster_.links()[id].name, in, capacity, carried, time > 0 ? carried / (capacity * time) : 0});
  };
  for (const sim::LinkId link : wire_.links_into(node)) add(link, true);
  for (const sim::LinkId link : wire_.links_out_of(node)) add(link, false);
}

PsOutcome RunningJob::finish() {
  if (!ended_) {
    if (faults_ != nullptr) report_faults();
    std::string who;
    for (const Worker& worker : workers_) {
      if (!worker.finished) who += (who.empty() ? "" : ", ") + id_of(worker.node);
    }
    simulated_failure("deadlock", "the job with parameter servers stands still: {} cannot go on", who);
  }
  const std::size_t left = outcome_.nodes.size();
  for (const Server& server : servers_) outcome_.nodes.push_back(figures_of(server.node, &server, nullptr));
  std::rotate(outcome_.nodes.begin(), outcome_.nodes.begin() + static_cast<std::ptrdiff_t>(left), outcome_.nodes.end());
  for (const Worker& worker : workers_) outcome_.nodes.push_back(figures_of(worker.node, nullptr, &worker));
  // Nodes that were added when the job ended.
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const auto of_node = [node](const auto& one) { return one.node == node; };
    if (nodes_[node].left || std::ranges::any_of(servers_, of_node) || std::ranges::any_of(workers_, of_node)) continue;
    outcome_.nodes.push_back(figures_of(node, nullptr, nullptr));
  }
  for (PsNodeFigures& figures : outcome_.nodes) {
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (id_of(node) == figures.name) add_links(node, figures);
    }
  }
  return std::move(outcome_);
}

Seconds PsOutcome::step_time() const {
  std::map<std::uint32_t, std::vector<const PsStep*>> of_worker;
  std::uint32_t last = 0;
  for (const PsStep& step : steps) {
    of_worker[step.worker].push_back(&step);
    last = std::max(last, step.step);
  }
  Seconds sum = 0;
  std::size_t workers = 0;
  for (const auto& [worker, done] : of_worker) {
    if (done.back()->step != last) continue;
    ++workers;
    sum += done.size() == 1 ? done.front()->end - done.front()->start
                            : (done.back()->end - done.front()->end) / static_cast<double>(done.size() - 1);
  }
  return workers == 0 ? 0 : sum / static_cast<double>(workers);
}

PsOutcome simulate_parameter_server(sim::Cluster& cluster, const models::Program& program, const PsOptions& options,
                                    sim::NetworkKind network, const HybridSetup* hybrid) {
  check(cluster, options);
  sim::EventLoop loop;
  const std::unique_ptr<sim::Network> wires = sim::make_network(network, cluster, loop, options.faults.get());
  RunningJob job(cluster, program, options, loop, *wires, hybrid);
  job.start();
  loop.run();
  PsOutcome outcome = job.finish();
  outcome.transfers = wires->completed();
  // What a fault held when the job ended is still under way.
  if (wires->completed() != wires->started() && options.faults == nullptr) {
    simulated_failure("network", "{} of {} transfers did not complete", wires->started() - wires->completed(),
                      wires->started());
  }
  return outcome;
}

}  // namespace hcclsim::hccl
