#include "study/jobs/job/numbers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "device/numerics/loss_scale.hpp"
#include "study/jobs/job/step_times.hpp"
#include "study/jobs/ps/numerics.hpp"
#include "study/jobs/ps/ps.hpp"
#include "study/run/numerics/numerics.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

/// A folder for checkpoints, which goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "hcclsim-job-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) bad_input("output", "no folder can be made for checkpoints: {}", path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Steps of one kind of hosts without a break, and what they are computed on.
struct Computed {
  std::string shape{};
  std::string data{};
  std::vector<JobStep> steps{};
  // What require_exact() looks at
  std::optional<Divergence> diverged{};
  std::optional<ReplicaDifference> replicas{};
  std::optional<GradientError> gradient_error{};
};

/// Numbers of the runs of all workers together, or of one that trains by itself, in their order.
using Chain = std::vector<std::size_t>;

Seconds end_of_step(const TrainingRun& run, std::uint64_t step) {
  return run.start + run.step_times.of(run.first_step, step + 1 - run.first_step);
}

// --- Data parallelism

/// Steps of data parallelism on these NPUs, from one checkpoint to another; empty names: there is none.
Computed train_on(RunSpec spec, const TrainingRun& run, std::uint64_t steps, const std::string& from,
                  const std::string& to, sim::Cluster& cluster) {
  spec.npus = static_cast<Rank>(run.hosts.npus.size());
  spec.simulation.iterations = static_cast<std::uint32_t>(steps);
  spec.numerics->load = from;
  spec.numerics->save = to;
  return run_in_child([&] {
    cluster.renumber(run.hosts.npus);
    Experiment experiment(spec, cluster);
    TrainingClock clock(experiment, spec.simulation.iterations, past_of(*spec.numerics));
    RunResult result = simulate_run(experiment);
    const Training training =
        compute_numerics(experiment, result.step, result.start_up_plan(), clock, {}, result.numerics.emplace());
    if (training.failure.has_value()) throw Error(*training.failure);
    Computed computed{.shape = result.numerics->computed_shape,
                      .data = result.numerics->data,
                      .diverged = result.numerics->diverged,
                      .replicas = result.numerics->replicas,
                      .gradient_error = result.numerics->gradient_error};
    for (const NumericsIteration& one : result.numerics->iterations) {
      const std::uint64_t step = one.iteration - 1;
      computed.steps.push_back({step, end_of_step(run, step), one.loss, one.accuracy});
    }
    return computed;
  });
}

void add(const Computed& more, std::size_t run, JobNumerics& result) {
  result.computed_shape = more.shape;
  result.data = more.data;
  result.runs[run].insert(result.runs[run].end(), more.steps.begin(), more.steps.end());
  NumericsResult found;
  found.diverged = more.diverged;
  found.replicas = more.replicas;
  found.gradient_error = more.gradient_error;
  try {
    require_exact(found);
  } catch (const Error& error) {
    result.failure = error;
  }
}

/// A run is computed up to its last checkpoint, which is kept, and from there to its end.
void train_by_allreduce(const RunSpec& spec, const TrainingPlan& plan, const std::vector<TrainingRun>& runs,
                        const Chain& chain, sim::Cluster& cluster, JobNumerics& result) {
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::size_t number = chain[i];
    const TrainingRun& run = runs[number];
    std::string from = run.first_step > 0 ? folder.file(std::to_string(run.first_step)) : "";
    std::uint64_t done = run.first_step;
    const std::uint64_t end = run.first_step + run.steps;
    const std::uint64_t saved = plan.checkpoint_every > 0 ? end / plan.checkpoint_every * plan.checkpoint_every : 0;
    if (saved > done && i + 1 < chain.size() && runs[chain[i + 1]].first_step == saved) {
      const std::string to = folder.file(std::to_string(saved));
      add(train_on(spec, run, saved - done, from, to, cluster), number, result);
      from = to;
      done = saved;
    }
    if (end > done && !result.failure.has_value())
      add(train_on(spec, run, end - done, from, "", cluster), number, result);
    if (result.failure.has_value()) return;
  }
}

// --- Parameter servers

/// Every run is simulated from its first step to its last one, and repeated with real gradients.
std::vector<Computed> train_with_servers(RunSpec spec, const TrainingPlan& plan, const std::vector<TrainingRun>& runs,
                                         const Chain& chain, sim::Cluster& cluster) {
  return run_in_child([&] {
    std::optional<PsTraining> training;
    std::vector<Computed> computed;
    for (const std::size_t number : chain) {
      const TrainingRun& run = runs[number];
      computed.emplace_back();
      if (run.steps == 0) continue;
      spec.simulation.iterations = static_cast<std::uint32_t>(run.first_step + run.steps);
      PsExperiment made(spec, servers_on(run.hosts), cluster);
      made.options.first_step = static_cast<std::uint32_t>(run.first_step);
      const hccl::PsOutcome outcome =
          hccl::simulate_parameter_server(cluster, *made.experiment.program, made.options, made.network,
                                          made.hybrid.has_value() ? &*made.hybrid : nullptr);
      if (!outcome.failure.empty()) internal_error("a run of a job fails: {}", outcome.failure);
      if (run.first_step == 0) {
        training.emplace(made, static_cast<std::uint32_t>(plan.checkpoint_every));
      } else {
        training->replay().take({.kind = hccl::PsLogEntry::Kind::rollback});
      }
      hccl::Replay& replay = training->replay();
      const std::size_t before = replay.steps().size();
      for (const hccl::PsLogEntry& entry : outcome.log) replay.take(entry);
      // A checkpoint is written behind the last step of it, and none of the next one may be done any more.
      if (plan.checkpoint_every > 0 && spec.simulation.iterations % plan.checkpoint_every == 0)
        replay.save_checkpoint();
      const PsNumerics described = training->description();
      const std::vector<WorkersStep> steps = steps_of_workers(std::span(replay.steps()).subspan(before));
      computed.back() = {.shape = described.computed_shape,
                         .data = described.data,
                         .diverged = training->divergence(steps, run.first_step + 1)};
      for (const WorkersStep& one : steps) {
        computed.back().steps.push_back({one.step, end_of_step(run, one.step), one.loss, one.accuracy});
      }
    }
    return computed;
  });
}

}  // namespace

void require_numbers(const MsJob& job, const RunSpec& run) {
  const NumericsSpec& numerics = *run.numerics;
  const bool of_reductions = !numerics.gradients_mean || numerics.memory_limit.has_value() ||
                             numerics.check_all_reductions || run.clip_norm.has_value() ||
                             run.loss_scale.kind() != device::LossScaler::Kind::none;
  if (of_reductions && job.of(JobRole::ps) != nullptr) {
    bad_input("unsupported",
              "{}: --gradients-mean, --clip-norm, --loss-scale, --check-reductions and --memory-limit are of gradients "
              "that workers reduce among themselves; a job with parameter servers has none",
              job.file);
  }
}

JobNumerics train_job(const RunSpec& run, const TrainingPlan& plan, const std::vector<TrainingRun>& runs,
                      sim::Cluster& cluster) {
  JobNumerics result{.seed = run.numerics->seed};
  if (plan.steps > std::numeric_limits<std::uint32_t>::max()) {
    bad_input("option", "--steps {}: real gradients are computed of at most {} steps", plan.steps,
              std::numeric_limits<std::uint32_t>::max());
  }
  result.runs.resize(runs.size());
  std::map<std::string, Chain> chains;  // by worker that trains by itself
  for (std::size_t number = 0; number < runs.size(); ++number) chains[runs[number].worker].push_back(number);
  for (const auto& [worker, chain] : chains) {
    if (runs[chain.front()].hosts.parameter_servers.empty()) {
      train_by_allreduce(run, plan, runs, chain, cluster, result);
    } else {
      const std::vector<Computed> computed = train_with_servers(run, plan, runs, chain, cluster);
      for (std::size_t i = 0; i < chain.size() && !result.failure.has_value(); ++i) {
        if (!computed[i].steps.empty()) add(computed[i], chain[i], result);
      }
    }
    if (result.failure.has_value()) break;
  }
  return result;
}

}  // namespace hcclsim::study
