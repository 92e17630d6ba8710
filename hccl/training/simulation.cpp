#include "hccl/training/simulation.hpp"

#include <algorithm>
#include <memory>
#include <string>
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
HostTimes host_times(const device::TaskCosts& costs, const StepSpec& step) {
  HostTimes times{.kernel = step.host_launch.value_or(0)};
  if (step.input.has_value()) times.samples_per_second = step.input->samples_per_second;
  if (step.launch == LaunchMode::op) {
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

/// `on_end` with iterations counted where somebody asks.
IterationEnd counted(const SimulatedPlan& one) {
  if (one.options.work == nullptr) return one.on_end;
  one.options.work->plan(one.iterations);
  return [&work = *one.options.work, on_end = one.on_end](std::span<const Seconds> ends) {
    work.done();
    return !on_end || on_end(ends);
  };
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

/// Of each Plan the links that others load, by LinkId; nothing of one that is alone, or if none is to be folded.
std::vector<std::vector<bool>> links_of_others(std::span<const SimulatedPlan> plans) {
  std::vector<std::vector<bool>> found(plans.size());
  const auto folds = [](const SimulatedPlan& one) {
    return one.options.fold != Fold::off && one.options.network == sim::NetworkKind::fluid;
  };
  if (plans.size() == 1 || std::ranges::none_of(plans, folds)) return found;
  const std::size_t links = plans.front().cluster.links().size();
  std::vector<std::uint32_t> jobs_on(links, 0);
  for (std::size_t job = 0; job < plans.size(); ++job) {
    const SimulatedPlan& one = plans[job];
    const std::unique_ptr<sim::CpuHosts> cpus = cpus_of(one.cluster, one.plan);
    const PrivateLinks own = private_links_of(one.cluster, cpus.get(), one.plan, nullptr, one.options.rank);
    found[job].resize(links);
    for (sim::LinkId link = 0; link < links; ++link) {
      found[job][link] = own.loads(link);
      if (found[job][link]) ++jobs_on[link];
    }
  }
  for (std::vector<bool>& of_job : found) {
    for (sim::LinkId link = 0; link < links; ++link) of_job[link] = jobs_on[link] > (of_job[link] ? 1U : 0U);
  }
  return found;
}

/// `used_by_others`: as of RankTraits.
std::optional<RankOrbits> orbits_of(const SimulatedPlan& one, std::vector<bool> used_by_others) {
  const SimulationOptions& options = one.options;
  if (options.fold == Fold::off) return {};
  const bool required = options.fold == Fold::require;
  std::string reason = "no ranks do the same at the same dates on this platform";
  if (options.faults != nullptr) reason += " with these faults";
  if (!used_by_others.empty()) reason += " beside the other jobs";
  if (options.network != sim::NetworkKind::fluid) {
    reason = "it is for the network fluid (--network fluid)";
  } else if (options.trace_tasks || options.stream != nullptr) {
    reason = "what is asked for shows tasks of every rank";
  } else if (options.skew.jitters()) {
    reason = "kernels have jitter, of which every rank has its own";
  } else {
    std::vector<Rank> preferred{options.rank};
    preferred.insert(preferred.end(), options.traced.begin(), options.traced.end());
    const std::unique_ptr<sim::CpuHosts> cpus = cpus_of(one.cluster, one.plan);
    const RankTraits traits{
        .skew = options.skew,
        .samples_per_second = one.step.input.has_value() ? one.step.input->samples_per_second : std::vector<double>{},
        .faults = options.faults.get(),
        .used_by_others = std::move(used_by_others)};
    std::optional<RankOrbits> orbits = find_orbits(one.cluster, cpus.get(), one.plan, traits, preferred);
    if (orbits.has_value() || !required) return orbits;
  }
  if (required) bad_input("fold", "{}{}--fold require: {}", one.job, one.job.empty() ? "" : ": ", reason);
  return {};
}

/// The links that ranks of any Plan fold. Nothing if none are folded.
std::optional<sim::LinkFold> fold_of(const std::vector<std::optional<RankOrbits>>& orbits) {
  std::optional<sim::LinkFold> fold;
  for (const std::optional<RankOrbits>& of_job : orbits) {
    if (!of_job.has_value()) continue;
    if (fold.has_value()) {
      fold->add(of_job->links());
    } else {
      fold = of_job->links();
    }
  }
  return fold;
}

}  // namespace

Simulation::Prepared::Prepared(const SimulatedPlan& one, const RankOrbits* orbits, const sim::LinkFold* fold)
    : folded(one.cluster, fold),
      cpus(cpus_of(one.cluster, one.plan)),
      private_links(private_links_of(one.cluster, cpus.get(), one.plan, orbits, one.options.rank)) {}

Simulation::Running::Running(const SimulatedPlan& one, const RankOrbits* orbits, const Prepared& prepared,
                             sim::EventLoop& loop, sim::Network& network, SharedNpus* shared)
    : runtime({.loop = loop,
               .network = network,
               .cluster = one.cluster,
               .costs = one.costs,
               .soc = one.soc,
               .trace = one.trace,
               .exec_timeout = one.step.config.exec_timeout,
               .flows = one.flows,
               .orbits = orbits,
               .private_links = shared == nullptr ? &prepared.private_links : nullptr,
               .cpus = prepared.cpus.get(),
               .job = one.job,
               .carried = one.carried,
               .moves_all = one.options.network != sim::NetworkKind::fluid,
               .faults = one.options.faults.get(),
               .shared = shared}),
      executor(one.plan, runtime, one.trace, one.options.skew, one.iterations, host_times(one.costs, one.step),
               counted(one), orbits, one.options.rank) {}

Simulation::Simulation(std::span<const SimulatedPlan> plans) {
  std::vector<std::vector<bool>> others = links_of_others(plans);
  for (std::size_t i = 0; i < plans.size(); ++i) orbits_.push_back(orbits_of(plans[i], std::move(others[i])));
  const std::optional<sim::LinkFold> fold = fold_of(orbits_);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    prepared_.emplace_back(plans[i], orbits(i), fold.has_value() ? &*fold : nullptr);
  }
  for (auto one = prepared_.begin(); one != prepared_.end(); ++one) {
    for (auto other = prepared_.begin(); other != one; ++other) one->private_links.meet(other->private_links);
  }
  share_npus(plans);
  if (network_ == nullptr) {
    const SimulationOptions& options = plans.front().options;
    network_ = sim::make_network(options.network, plans.front().cluster, loop_, options.faults.get());
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    running_.emplace_back(plans[i], orbits(i), prepared_[i], loop_, *network_, shared_[i]);
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
    shared_[i] = &npus_.emplace_back(*network, loop_, one.soc, one.costs, orbits(i), one.cluster.size(), first);
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
