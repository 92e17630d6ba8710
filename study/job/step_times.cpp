#include "study/job/step_times.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "study/on_platform.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

struct StepOnNpus {
  Seconds time = 0;
  std::vector<std::string> notes{};
};

StepOnNpus simulate_step(RunSpec spec, const std::vector<Rank>& npus) {
  const std::string file = find_platform(spec.platform.file);
  spec.npus = static_cast<Rank>(npus.size());
  return in_own_process([&] {
    sim::Cluster cluster(file, spec.platform.edits);
    cluster.renumber(npus);
    Experiment experiment(spec, cluster);
    RunResult result = simulate_run(experiment);
    return StepOnNpus{result.step_time(), std::move(result.notes)};
  });
}

}  // namespace

StepTime simulated_step_time(const RunSpec& spec, std::vector<std::string>& notes) {
  const auto known = std::make_shared<std::map<std::vector<Rank>, Seconds>>();
  return [spec, known, &notes](const TrainingHosts& hosts) {
    if (const auto found = known->find(hosts.npus); found != known->end()) return found->second;
    const StepOnNpus step = simulate_step(spec, hosts.npus);
    for (const std::string& note : step.notes) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
    known->emplace(hosts.npus, step.time);
    return step.time;
  };
}

void require_simulated_step(const MsJob& job) {
  if (job.replicas_of(JobRole::ps) > 0) {
    bad_input(
        "unsupported",
        "{}: spec.msReplicaSpecs.PS: a step with parameter servers cannot be simulated yet; say how long it takes "
        "with --step-time",
        job.file);
  }
  const ReplicaSpec* const workers = job.of(JobRole::worker);
  if (workers == nullptr || workers->replicas == 0 || npus_of(workers->pod.needed) > 0) return;
  bad_input("unsupported",
            "{}: spec.msReplicaSpecs.Worker: a worker asks for no NPU (limits such as huawei.com/Ascend910: 1), and a "
            "step on CPUs cannot be simulated; say how long it takes with --step-time",
            job.file);
}

}  // namespace hcclsim::study
