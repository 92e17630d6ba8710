#include "hccl/training/simulation.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "hccl/training/plan_links.hpp"
#include "hccl/training/plan_orbits.hpp"
#include "sim/network/memory_network.hpp"

namespace hcclsim::hccl {
namespace {

/// In graph mode the runtime adds what a launch takes.
HostTimes host_times(const device::TaskCosts& costs, const TrainingOptions& options) {
  HostTimes times{.kernel = options.host_launch.value_or(0)};
  if (options.input.has_value()) times.samples_per_second = options.input->samples_per_second;
  if (options.launch == LaunchMode::op) {
    times.collective = [&costs](const Schedule& schedule, Rank rank) {
      return issue_of(costs, LaunchMode::op, schedule, rank);
    };
  } else if (times.kernel > 0) {
    times.collective = [call = times.kernel](const Schedule& /*schedule*/, Rank /*rank*/) {
      return Issue{.call = call};
    };
  }
  return times;
}

/// The CPUs of the platform, if a Plan copies from them and there are any.
std::unique_ptr<sim::CpuHosts> cpus_of(sim::Cluster& cluster, const Plan& plan) {
  const bool copies = std::ranges::any_of(plan.roles, [](const Role& role) {
    return std::ranges::any_of(role.tasks,
                               [](const PlanTask& task) { return std::holds_alternative<HostCopy>(task.work); });
  });
  if (!copies) return nullptr;
  auto cpus = std::make_unique<sim::CpuHosts>(cluster);
  return cpus->size() > 0 ? std::move(cpus) : nullptr;
}

std::optional<RankOrbits> orbits_of(sim::Cluster& cluster, const TrainingOptions& options, const Plan& plan) {
  if (options.fold == Fold::off) return {};
  const bool required = options.fold == Fold::require;
  std::string_view reason = options.faults == nullptr
                                ? "no ranks do the same at the same dates on this platform"
                                : "no ranks do the same at the same dates on this platform with these faults";
  if (options.network != sim::NetworkKind::fluid) {
    reason = "it is for the network fluid (--network fluid)";
  } else if (options.trace_tasks || options.stream != nullptr) {
    reason = "what is asked for shows tasks of every rank";
  } else if (options.skew.jitters()) {
    reason = "kernels have jitter, of which every rank has its own";
  } else {
    std::vector<Rank> preferred{options.rank};
    preferred.insert(preferred.end(), options.traced.begin(), options.traced.end());
    const std::unique_ptr<sim::CpuHosts> cpus = cpus_of(cluster, plan);
    const RankTraits traits{options.skew,
                            options.input.has_value() ? options.input->samples_per_second : std::vector<double>{},
                            options.faults.get()};
    std::optional<RankOrbits> orbits = find_orbits(cluster, cpus.get(), plan, traits, preferred);
    if (orbits.has_value() || !required) return orbits;
  }
  if (required) bad_input("fold", "--fold require: {}", reason);
  return {};
}

}  // namespace

Simulation::Prepared::Prepared(const SimulatedPlan& one, bool alone)
    : orbits(alone ? orbits_of(one.cluster, one.options, one.plan) : std::nullopt),
      folded(one.cluster, orbits),
      cpus(cpus_of(one.cluster, one.plan)),
      private_links(private_links_of(one.cluster, cpus.get(), one.plan, orbits_or_null(), one.options.rank)) {}

Simulation::Running::Running(const SimulatedPlan& one, const Prepared& prepared, sim::EventLoop& loop,
                             sim::Network& network, SharedNpus* shared)
    : runtime({.loop = loop,
               .network = network,
               .cluster = one.cluster,
               .costs = one.costs,
               .soc = one.soc,
               .trace = one.trace,
               .exec_timeout = one.options.config.exec_timeout,
               .flows = one.flows,
               .orbits = prepared.orbits_or_null(),
               .private_links = shared == nullptr ? &prepared.private_links : nullptr,
               .cpus = prepared.cpus.get(),
               .job = one.job,
               .carried = one.carried,
               .moves_all = one.options.network != sim::NetworkKind::fluid,
               .faults = one.options.faults.get(),
               .shared = shared}),
      executor(one.plan, runtime, one.trace, one.options.skew, one.iterations, host_times(one.costs, one.options),
               one.on_end, prepared.orbits_or_null(), one.options.rank) {}

Simulation::Simulation(std::span<const SimulatedPlan> plans) {
  for (const SimulatedPlan& one : plans) prepared_.emplace_back(one, plans.size() == 1);
  for (auto one = prepared_.begin(); one != prepared_.end(); ++one) {
    for (auto other = prepared_.begin(); other != one; ++other) one->private_links.meet(other->private_links);
  }
  share_npus(plans);
  if (network_ == nullptr) {
    const TrainingOptions& options = plans.front().options;
    network_ = sim::make_network(options.network, plans.front().cluster, loop_, options.faults.get());
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    running_.emplace_back(plans[i], prepared_[i], loop_, *network_, shared_[i]);
  }
}

/// Of jobs that want it; one of them makes the network that has HBMs.
void Simulation::share_npus(std::span<const SimulatedPlan> plans) {
  shared_.resize(plans.size());
  std::vector<BytesPerSecond> hbms;
  for (const SimulatedPlan& one : plans) {
    if (one.options.hbm_contention) hbms.insert(hbms.end(), one.cluster.size(), one.soc.hbm_bandwidth);
  }
  if (hbms.empty()) return;
  auto network = sim::make_memory_network(plans.front().cluster, loop_, hbms);
  const auto asks_for_flows = [](const SimulatedPlan& one) { return one.flows != nullptr; };
  if (std::ranges::any_of(plans, asks_for_flows)) network->keep_rates();
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const SimulatedPlan& one = plans[i];
    if (!one.options.hbm_contention) continue;
    shared_[i] = &npus_.emplace_back(*network, loop_, one.soc, one.costs, prepared_[i].orbits_or_null(),
                                     one.cluster.size(), first);
    first += one.cluster.size();
  }
  network_ = std::move(network);
}

bool Simulation::any_stands_still() const {
  return std::ranges::any_of(running_, [](const Running& one) { return one.runtime.stands_still(); });
}

void Simulation::run() {
  for (Running& one : running_) one.executor.start();
  loop_.run();
  for (const Running& one : running_) one.runtime.require_finished();
  if (network_->completed() != network_->started()) {
    simulated_failure("network", "{} of {} transfers did not complete", network_->started() - network_->completed(),
                      network_->started());
  }
}

}  // namespace hcclsim::hccl
