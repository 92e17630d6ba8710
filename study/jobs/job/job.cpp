#include "study/jobs/job/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "models/zoo/zoo.hpp"
#include "study/jobs/job/msjob/read_msjob.hpp"
#include "study/jobs/job/step_times.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::study {
namespace {

/// As the device plugin of Ascend names it: "huawei.com/Ascend910" of an Ascend910B2.
std::string npu_resource_of(std::string_view soc) {
  std::size_t end = 0;
  while (end < soc.size() && std::isalpha(static_cast<unsigned char>(soc[end])) != 0) ++end;
  while (end < soc.size() && std::isdigit(static_cast<unsigned char>(soc[end])) != 0) ++end;
  return fmt::format("huawei.com/{}", soc.substr(0, end));
}

bool some_asks_for(const MsJob& job, const std::string& resource) {
  return std::any_of(job.replicas.begin(), job.replicas.end(),
                     [&](const ReplicaSpec& spec) { return spec.pod.needed.contains(resource); });
}

/// Gives each worker one NPU if workers ask for none. Returns whether they did.
bool give_workers_npus(MsJob& job, const std::string& npu_resource) {
  const auto workers = std::ranges::find(job.replicas, JobRole::worker, &ReplicaSpec::role);
  if (workers == job.replicas.end() || workers->replicas == 0 || npus_of(workers->pod.needed) > 0) return false;
  workers->pod.needed[npu_resource] = resource_unit;
  return true;
}

std::vector<std::string> notes_of(const MsJob& job, const JobSpec& spec) {
  std::vector<std::string> notes;
  if (some_asks_for(job, "nvidia.com/gpu")) notes.emplace_back("nvidia.com/gpu stands for the NPUs of the platform");
  if (some_asks_for(job, "memory") && !spec.servers.memory.has_value()) {
    notes.emplace_back("memory is not counted: --server-memory says how much a server has");
  }
  std::vector<std::string> without_effect;
  for (const ReplicaSpec& replica : job.replicas) {
    for (const std::string& key : replica.pod.without_effect) {
      without_effect.push_back(fmt::format("{} of {}", key, name_of(replica.role)));
    }
  }
  if (const auto& scheduling = job.policy.scheduling; scheduling.has_value()) {
    for (const std::string& key : scheduling->without_effect) without_effect.push_back(key + " of schedulingPolicy");
  }
  if (!without_effect.empty()) notes.push_back(fmt::format("without effect here: {}", fmt::join(without_effect, ", ")));
  if (job.replicas_of(JobRole::scheduler) > 1) {
    notes.emplace_back("more than one Scheduler: only the first is known to the others");
  }
  if (job.of(JobRole::scheduler) == nullptr) {
    notes.emplace_back(job.replicas_of(JobRole::worker) > 1
                           ? "no Scheduler: the pods get no MS_ variables, and every worker trains by itself"
                           : "no Scheduler: the pods get no MS_ variables");
  }
  return notes;
}

/// Time of the steps that counted, of all workers together: what a failure made worthless did not, nor does what a
/// worker does once more that has done all steps.
Seconds counted_time(const MsJob& job, const std::vector<TrainingRun>& runs, std::uint64_t all_steps) {
  Seconds counted = 0;
  std::set<std::string> done;  // workers
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    if (done.contains(run->worker)) continue;
    std::uint64_t steps = run->steps;
    if (run->first_step + steps == all_steps) {
      done.insert(run->worker);
    } else {
      const auto next = std::find_if(std::next(run), runs.end(),
                                     [&](const TrainingRun& later) { return later.worker == run->worker; });
      steps = next == runs.end() ? steps : std::min(steps, next->first_step - run->first_step);
    }
    const std::uint32_t workers = run->worker.empty() ? job.replicas_of(JobRole::worker) : 1;
    counted += workers * run->step_times.of(run->first_step, steps);
  }
  return counted;
}

void check_compression(const JobSpec& spec, const MsJob& job) {
  if (!spec.run.step.compression.has_value()) return;
  if (spec.step_time.has_value()) {
    bad_input("option", "--compress: the time of a step is given (--step-time), and nothing of it is simulated");
  }
  if (job.of(JobRole::ps) != nullptr) {
    bad_input("option", "--compress: {} has parameter servers, and no gradients are reduced among its workers",
              spec.file);
  }
}

}  // namespace

Rank JobResult::npus() const {
  const ReplicaSpec* const workers = job.of(JobRole::worker);
  return workers == nullptr ? 0 : workers->replicas * npus_of(workers->pod.needed);
}

JobFigures JobResult::figures() const {
  JobFigures figures{.restarts = outcome.counters.restarted};
  for (const Pod& pod : outcome.pods) figures.restarts += pod.restarts();
  Seconds time = 0;
  std::uint64_t steps = 0;
  for (const TrainingRun& run : outcome.runs) {
    time += run.step_times.of(run.first_step, run.steps);
    steps += run.steps;
  }
  if (steps > 0) figures.step = time / static_cast<double>(steps);
  if (!succeeded()) return figures;
  figures.time = outcome.status.completion;
  const Seconds of_workers = *figures.time * job.replicas_of(JobRole::worker);
  if (of_workers > 0) figures.goodput = counted_time(job, outcome.runs, scenario.plan.steps) / of_workers;
  return figures;
}

std::vector<JobServer> servers_of(const sim::Cluster& cluster, const ServerSize& size) {
  std::vector<JobServer> servers(cluster.servers());
  for (std::uint32_t server = 0; server < cluster.servers(); ++server) {
    servers[server].name = fmt::format("server{}", server);
    servers[server].cpus = size.cpus;
    servers[server].memory = size.memory;
  }
  for (Rank npu = 0; npu < cluster.size(); ++npu) {
    JobServer& server = servers[cluster.npu(npu).server];
    server.npus.push_back(npu);
    server.npu_resource = npu_resource_of(cluster.npu(npu).soc);
  }
  return servers;
}

JobResult run_job(const JobSpec& spec, sim::Cluster& cluster) {
  JobResult result;
  result.job = read_msjob(spec.file);
  if (spec.run.numerics.has_value()) require_numbers(result.job, spec.run);
  check_compression(spec, result.job);
  result.platform = platform_name(cluster.path());
  result.servers = servers_of(cluster, spec.servers);
  result.scenario = spec.scenario;
  result.notes = notes_of(result.job, spec);
  const bool needs_npus = !spec.step_time.has_value() || spec.run.numerics.has_value();
  if (needs_npus && give_workers_npus(result.job, result.servers.front().npu_resource)) {
    result.notes.push_back(fmt::format("workers ask for no NPU; each gets one, as with limits of {}: 1",
                                       result.servers.front().npu_resource));
  }
  // The time of a step is that of a run without real gradients.
  RunSpec run = spec.run;
  run.numerics.reset();
  StepTime step_time;
  if (spec.step_time.has_value()) {
    step_time = [time = *spec.step_time](const TrainingHosts&) { return StepTimes{.first = time}; };
  } else {
    if (run.gradients_file.empty()) static_cast<void>(models::make_model(run.model));  // wrong ones are known at once
    result.model = run.gradients_file.empty() ? run.model.name : run.gradients_file;
    step_time = simulated_step_time(run, cluster, result.notes);
  }
  result.outcome = simulate_job(result.job, result.servers, spec.scenario, step_time);
  if (spec.run.numerics.has_value()) {
    result.numerics = train_job(spec.run, spec.scenario.plan, result.outcome.runs, cluster);
  }
  return result;
}

}  // namespace hcclsim::study
