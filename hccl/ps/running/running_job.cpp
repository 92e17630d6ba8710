#include "hccl/ps/running/running_job.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

RunningJob::RunningJob(sim::Cluster& cluster, const models::Program& program, const PsOptions& options,
                       sim::EventLoop& loop, sim::Network& network, const HybridSetup* hybrid)
    : cluster_(cluster),
      options_(options),
      wire_(loop, network, cluster, options.costs.call, options.faults.get()),
      timeline_(options, loop, wire_, outcome_.log),
      members_(options, cluster, wire_, timeline_, outcome_,
               [this](bool first) { first ? steps_.send_initial_weights() : scaling_.look_at_barrier(); }),
      progress_(options, loop),
      batches_(options.embeddings),
      servers_(options, timeline_, members_),
      exchange_(options, timeline_, members_, progress_, servers_, batches_, outcome_.staleness,
                [this](std::uint32_t worker) { steps_.end_if_done(worker); }),
      rows_(
          options, timeline_, members_, progress_, servers_, batches_, outcome_.tables,
          [this](std::uint32_t worker) { steps_.compute(worker); }, [this] { scaling_.look_at_barrier(); }),
      hybrid_(hybrid == nullptr ? nullptr : std::make_unique<HybridReduction>(*hybrid, loop, network, cluster)),
      steps_(program, options, hybrid_.get(), timeline_, members_, progress_, servers_, exchange_, rows_,
             outcome_.steps, [this] { scaling_.look_at_barrier(); }),
      scaling_(options, timeline_, members_, progress_, servers_, rows_, steps_, outcome_),
      failover_(options, wire_, timeline_, members_, servers_, exchange_, steps_, scaling_) {
  if (options.faults == nullptr) return;
  diagnosis_.emplace(options, wire_, timeline_, members_, progress_, servers_, exchange_, steps_);
}

void RunningJob::start() {
  members_.note("scheduler", "starts");
  for (const PsHost& host : options_.servers) members_.add(PsRole::server, host, 0);
  for (std::uint32_t number = 0; number < options_.workers.size(); ++number) {
    members_.add(PsRole::worker, options_.workers[number], options_.skew.start(number));
  }
  scaling_.place();
  timeline_.always_at(options_.times.cluster_timeout, [this] {
    if (members_.state() != PsState::starting) return;
    members_.end_job(fmt::format("{} of {} nodes have not registered within {} s", members_.unregistered(),
                                 members_.count(), options_.times.cluster_timeout));
  });
  for (const PsRequest& request : options_.requests) {
    timeline_.always_at(request.date, [this, &request] { handle(request); });
  }
  for (const PsFailure& failure : options_.failures) {
    timeline_.always_at(failure.date, [this, &failure] { failover_.fail(failure); });
  }
}

void RunningJob::handle(const PsRequest& request) {
  if (!members_.scheduler_alive()) {
    members_.note("client", fmt::format("{}: connection refused", name_of(request.kind)));
    return;
  }
  const std::string_view state = name_of(members_.state());
  if (request.kind == PsRequest::Kind::state) {
    members_.note("scheduler", fmt::format("HTTP 200: state {}", state));
  } else if (request.kind == PsRequest::Kind::nodes) {
    members_.note("scheduler", "HTTP 200: " + members_.answer());
  } else if (members_.state() != PsState::ready) {
    members_.note("scheduler", fmt::format("HTTP 400: {} while the cluster is {}", name_of(request.kind), state));
  } else if (request.kind == PsRequest::Kind::scale_out) {
    scaling_.scale_out(request);
  } else {
    scaling_.scale_in(request);
  }
}

void RunningJob::report_standstill() const {
  if (diagnosis_.has_value()) {
    if (hybrid_ != nullptr) hybrid_->require_finished();
    diagnosis_->report();
  }
  std::string who;
  for (std::uint32_t worker = 0; worker < progress_.workers(); ++worker) {
    if (!progress_.finished(worker)) who += (who.empty() ? "" : ", ") + members_.id(members_.worker(worker));
  }
  simulated_failure("deadlock", "the job with parameter servers stands still: {} cannot go on", who);
}

PsOutcome RunningJob::finish() {
  if (!timeline_.ended()) report_standstill();
  add_figures();
  return std::move(outcome_);
}

/// Servers, those that have left behind the others; workers; nodes that were added when the job ended.
void RunningJob::add_figures() {
  std::vector<PsNodeFigures> all;
  for (std::uint32_t server = 0; server < servers_.count(); ++server) {
    all.push_back(members_.figures(members_.server(server)));
    all.back().busy = servers_.busy(server);
    all.back().placed = servers_.placed(server);
  }
  all.insert(all.end(), outcome_.nodes.begin(), outcome_.nodes.end());
  for (std::uint32_t worker = 0; worker < progress_.workers(); ++worker) {
    all.push_back(members_.figures(members_.worker(worker)));
    all.back().waited = steps_.waited(worker);
  }
  for (std::uint32_t node = 0; node < members_.count(); ++node) {
    auto found = std::ranges::find(all, members_.id(node), &PsNodeFigures::name);
    if (found == all.end()) found = all.insert(all.end(), members_.figures(node));
    add_links(node, *found);
  }
  outcome_.nodes = std::move(all);
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

}  // namespace hcclsim::hccl
