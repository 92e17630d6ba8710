#include "hccl/ps/simulation.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "hccl/ps/running/running_job.hpp"

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
