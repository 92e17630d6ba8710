#include "study/jobs/job/step_times.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/child_process.hpp"
#include "study/jobs/ps/ps.hpp"
#include "study/run/compression.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

struct StepOnNpus {
  StepTimes times{};
  std::vector<std::string> notes{};
};

StepOnNpus simulate_step(RunSpec spec, const std::vector<Rank>& npus, sim::Cluster& cluster) {
  spec.npus = static_cast<Rank>(npus.size());
  return run_in_child([&] {
    cluster.renumber(npus);
    Experiment experiment(spec, cluster);
    if (const auto& compression = experiment.training.step.compression; compression.has_value()) {
      ChildOf<Seconds> plain = start_step(experiment, false);
      ChildOf<Seconds> compressed = start_step(experiment, true);
      const Seconds first = plain.result();
      return StepOnNpus{{first, compression->settings.start, compressed.result()}, experiment.notes};
    }
    RunResult result = simulate_run(experiment);
    return StepOnNpus{{.first = result.step_time()}, std::move(result.notes)};
  });
}

StepOnNpus simulate_step_with_servers(const RunSpec& spec, const PsSpec& servers, sim::Cluster& cluster) {
  return {{.first = run_in_child([&] { return ps_step_time(spec, servers, cluster); })}, {}};
}

}  // namespace

PsSpec servers_on(const TrainingHosts& hosts) {
  PsSpec servers;
  servers.servers = static_cast<std::uint32_t>(hosts.parameter_servers.size());
  servers.hosts = {.cpu = true, .numbers = hosts.parameter_servers};
  servers.worker_npus = hosts.npus;
  servers.generation = hccl::PsGeneration::dynamic;
  return servers;
}

StepTime simulated_step_time(const RunSpec& spec, sim::Cluster& cluster, std::vector<std::string>& notes) {
  const auto known = std::make_shared<std::map<TrainingHosts, StepTimes>>();
  return [spec, known, &cluster, &notes](const TrainingHosts& hosts) {
    if (const auto found = known->find(hosts); found != known->end()) return found->second;
    const StepOnNpus step = hosts.parameter_servers.empty()
                                ? simulate_step(spec, hosts.npus, cluster)
                                : simulate_step_with_servers(spec, servers_on(hosts), cluster);
    for (const std::string& note : step.notes) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
    known->emplace(hosts, step.times);
    return step.times;
  };
}

}  // namespace hcclsim::study
