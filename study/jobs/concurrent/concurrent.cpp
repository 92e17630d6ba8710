#include "study/jobs/concurrent/concurrent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/training/step_view.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network_kind.hpp"
#include "study/platform/fault_notes.hpp"
#include "study/platform/link_sources.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/parallel_result.hpp"

namespace hcclsim::study {
namespace {

/// Names the job in an Error that `work` throws.
template <typename Work>
auto naming_job(const std::string& job, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", job, error.what()));
  }
}

/// A job with its own numbers of the NPUs.
struct LoadedJob {
  LoadedJob(const ConcurrentJob& job, const sim::Cluster& loaded)
      : name(job.name),
        cluster(loaded.of_another_job()),
        experiment(naming_job(job.name, [&] { return Experiment(job.run, cluster); })) {}

  const std::string& name;
  sim::Cluster cluster;
  Experiment experiment;
};

std::string edits_of(const RunSpec& run) {
  std::string text;
  for (const sim::PlatformEdit& edit : run.platform.edits) text += fmt::format(" --set {}={}", edit.target, edit.value);
  if (run.platform.routing.has_value()) text += " --routing " + text_of(*run.platform.routing);
  return text;
}

void require_one_platform(const ConcurrentJob& first, const ConcurrentJob& other) {
  const auto platform = [](const ConcurrentJob& job) { return job.run.platform.file + edits_of(job.run); };
  if (platform(first) != platform(other)) {
    bad_input("option", "{} is on {}, {} on {}: concurrent jobs share one platform; give it on the command line",
              first.name, platform(first), other.name, platform(other));
  }
  if (first.run.simulation.network != other.run.simulation.network) {
    bad_input("option", "{} has --network {}, {} {}: concurrent jobs share one network; give it on the command line",
              first.name, name_of(first.run.simulation.network), other.name, name_of(other.run.simulation.network));
  }
}

/// A job that has its steps alone.
struct AloneFigures {
  StepFigures step;
  Seconds end = 0;  ///< of its last iteration
};

/// In stages, waiting for the other stages is none of communication.
StepFigures step_figures(const Experiment& experiment, const hccl::TimedStep& step) {
  const hccl::TrainingStep& training = experiment.training;
  const Rank rank = training.simulation.rank;
  const Seconds time = step.step_times[rank];
  if (training.step.shape.stages == 1) return {time, hccl::StepView::of(step.plan, step.trace, rank).exposed};
  return {time, parallel_result(experiment, step).stages[rank / training.step.stage_ranks()].exposed.sum()};
}

/// Every job alone, each in a child. They have all ended before jobs run together: one that cannot finish is known
/// then.
std::vector<AloneFigures> simulate_alone(std::deque<LoadedJob>& jobs) {
  std::deque<ChildOf<AloneFigures>> children;
  for (LoadedJob& job : jobs) {
    children.emplace_back([&job] {
      const hccl::TrainingStep& training = job.experiment.training;
      const hccl::TimedStep step = job.experiment.simulate(training);
      return AloneFigures{step_figures(job.experiment, step), std::ranges::max(step.pipeline_ends.back())};
    });
  }
  std::vector<AloneFigures> steps;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    steps.push_back(naming_job(jobs[i].name + ", alone", [&] { return children[i].result(); }));
  }
  return steps;
}

/// Throws if a job would repeat its step for too long until the last one has done its own, by the steps of all alone.
void require_few_steps(const std::vector<ConcurrentJob>& jobs, std::deque<LoadedJob>& loaded,
                       const std::vector<AloneFigures>& alone) {
  constexpr double most = 10'000;
  const auto last = static_cast<std::size_t>(std::ranges::max_element(alone, {}, &AloneFigures::end) - alone.begin());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double steps = (alone[last].end - jobs[i].run.skew.start) / alone[i].step.time;
    const double more = steps - loaded[i].experiment.training.simulation.iterations;
    if (more <= most) continue;
    bad_input("option",
              "{} would repeat its step of {:.3g} ms about {:.0f} times until {}, which starts at {:g} s, has done its "
              "own; up to {:.0f} times are simulated: let them start closer together",
              jobs[i].name, 1e3 * alone[i].step.time, more, jobs[last].name, jobs[last].run.skew.start, most);
  }
}

/// Links fail for all jobs, and an NPU that stands still may hold what others send over its links.
void share_faults(const std::vector<ConcurrentJob>& jobs, std::deque<LoadedJob>& loaded) {
  std::vector<sim::JobFaults> given;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    given.push_back({loaded[i].cluster, jobs[i].run.faults, loaded[i].experiment.npus});
  }
  const std::vector<std::shared_ptr<const sim::FaultPlan>> plans = sim::FaultPlan::of_jobs(given);
  for (std::size_t i = 0; i < jobs.size(); ++i) loaded[i].experiment.training.simulation.faults = plans[i];
}

/// Faults of links once each; those of NPUs with the job whose ranks they name.
void add_faults(const std::vector<ConcurrentJob>& jobs, ConcurrentResult& result) {
  for (const ConcurrentJob& job : jobs) {
    for (sim::Fault fault : job.run.faults) {
      if (!fault.of_links()) fault.text = fmt::format("{}: {}", job.name, fault.text);
      if (std::ranges::find(result.faults, fault.text, &sim::Fault::text) == result.faults.end()) {
        result.faults.push_back(std::move(fault));
      }
    }
  }
  if (result.faults.empty()) return;
  std::vector<Seconds> ends;
  for (const ConcurrentJobResult& job : result.jobs) ends.push_back(std::ranges::max(job.step.pipeline_ends.back()));
  note_faults_to_come(result.faults, ends, result.notes);
  std::vector<std::vector<std::string>> idle;
  for (const ConcurrentJobResult& job : result.jobs) idle.push_back(job.step.idle_faults);
  note_idle_faults(idle, result.notes);
}

std::vector<MeetingLink> meeting_links(const sim::Cluster& cluster, const std::vector<hccl::ConcurrentStep>& steps,
                                       const std::vector<ConcurrentJobResult>& jobs) {
  std::vector<MeetingLink> meeting;
  for (sim::LinkId id = 0; id < cluster.links().size(); ++id) {
    const sim::Link& link = cluster.links()[id];
    const auto users = std::ranges::count_if(steps, [id](const auto& one) { return one.carried[id] > 0; });
    if (users < 2 || !link.shared) continue;
    MeetingLink found{link.name, std::string(title_of(link.kind)), cluster.capacity(id), {}};
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      const double bytes = steps[job].carried[id];
      found.parts.push_back({bytes, bytes / (found.capacity * jobs[job].together.time)});
    }
    meeting.push_back(std::move(found));
  }
  std::ranges::stable_sort(meeting, std::ranges::greater(), &MeetingLink::load);
  return meeting;
}

/// Says where a job's own iterations are no fair sample of the others: they ended before another one's first did.
void note_short_jobs(std::vector<ConcurrentJobResult>& jobs) {
  for (ConcurrentJobResult& job : jobs) {
    const Seconds end = job.step.pipeline_ends.back()[job.rank];
    for (const ConcurrentJobResult& other : jobs) {
      const Seconds first = other.step.pipeline_ends.front()[other.rank];
      if (end >= first) continue;
      job.notes.push_back(
          fmt::format("its {} before the first of {} does, of which {} a part only; --iterations gives it more",
                      job.iterations == 1 ? "one iteration ends" : fmt::format("{} iterations end", job.iterations),
                      other.name, job.iterations == 1 ? "it meets" : "they meet"));
    }
  }
}

}  // namespace

double MeetingLink::load() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0, [](double sum, const Part& part) { return sum + part.load; });
}

void require_concurrent(const std::vector<ConcurrentJob>& jobs) {
  if (jobs.empty()) internal_error("no concurrent jobs");
  std::map<Rank, const ConcurrentJob*> taken;
  for (const ConcurrentJob& job : jobs) {
    require_one_platform(jobs.front(), job);
    const std::vector<Rank>& npus = job.run.platform.rank_table.npus_list;
    if (npus.empty()) {
      bad_input("option", "{}: a concurrent job needs npus-list, the NPUs that it is on, such as npus-list = \"0-7\"",
                job.name);
    }
    for (const Rank npu : npus) {
      const auto [place, is_free] = taken.try_emplace(npu, &job);
      if (is_free || place->second == &job) continue;  // a list that names an NPU twice is refused with the platform
      bad_input("option", "{} (npus-list {}) and {} (npus-list {}) both want NPU {}: an NPU trains one job",
                place->second->name, hccl::rank_ranges(place->second->run.platform.rank_table.npus_list), job.name,
                hccl::rank_ranges(npus), npu);
    }
  }
}

ConcurrentResult simulate_concurrent(const std::vector<ConcurrentJob>& jobs, const sim::Cluster& cluster,
                                     const std::vector<std::vector<Rank>>& traced) {
  std::deque<LoadedJob> loaded;
  for (const ConcurrentJob& job : jobs) loaded.emplace_back(job, cluster);
  share_faults(jobs, loaded);
  const std::vector<AloneFigures> alone = simulate_alone(loaded);
  require_few_steps(jobs, loaded, alone);

  std::vector<hccl::TrainingJob> together;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Experiment& experiment = loaded[i].experiment;
    if (!traced.empty()) {
      experiment.training.simulation.traced = traced[i];
      experiment.training.simulation.trace_tasks = !traced[i].empty();
    }
    together.push_back({jobs[i].name, loaded[i].cluster, experiment.soc, experiment.costs, experiment.training});
  }
  std::vector<hccl::ConcurrentStep> steps = hccl::simulate_together(together);

  ConcurrentResult result{platform_name(cluster.path()),
                          loaded.front().experiment.soc.name,
                          std::string(name_of(jobs.front().run.simulation.network)),
                          {},
                          {},
                          {},
                          {}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Experiment& experiment = loaded[i].experiment;
    const Rank rank = experiment.training.simulation.rank;
    ConcurrentJobResult& one = result.jobs.emplace_back();
    one.name = jobs[i].name;
    one.model = network_title(*experiment.program);
    one.npus = jobs[i].run.platform.rank_table.npus_list;
    one.rank = rank;
    one.start = jobs[i].run.skew.start;
    one.iterations = experiment.training.simulation.iterations;
    one.steps = steps[i].steps;
    one.alone = alone[i].step;
    one.step = std::move(steps[i].step);
    one.together = step_figures(experiment, one.step);
    one.hbm_contention = experiment.training.simulation.hbm_contention;
    one.unmodelled = experiment.unmodelled;
    one.notes = experiment.notes;
  }
  note_short_jobs(result.jobs);
  add_faults(jobs, result);
  result.links = meeting_links(cluster, steps, result.jobs);
  return result;
}

}  // namespace hcclsim::study
