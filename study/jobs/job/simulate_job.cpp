#include "study/jobs/job/simulate_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "study/jobs/job/cluster/job_operator.hpp"

namespace hcclsim::study {
namespace {

/// Throws unless what breaks is there: a server of the platform or a pod that the job has.
void check_failure(const JobFailure& failure, const MsJob& job, const std::vector<JobServer>& servers) {
  if (failure.kind == JobFailure::Kind::host) {
    const bool there = std::any_of(servers.begin(), servers.end(),
                                   [&](const JobServer& server) { return server.name == failure.target; });
    if (there) return;
    bad_input("option", "--fail: there is no server '{}'; accepted: {}{}", printable(failure.target),
              servers.front().name, servers.size() > 1 ? " to " + servers.back().name : "");
  }
  for (const ReplicaSpec& spec : job.replicas) {
    for (std::uint32_t index = 0; index < spec.replicas; ++index) {
      const std::string name = pod_name(job, spec.role, index);
      if (failure.target == name || job.name + '-' + failure.target == name) return;
    }
  }
  const auto pods_of = [](const ReplicaSpec& spec) {
    std::string role(name_of(spec.role));
    std::transform(role.begin(), role.end(), role.begin(), [](char c) { return c < 'a' ? c - 'A' + 'a' : c; });
    return spec.replicas == 1 ? role + "-0" : fmt::format("{}-0 to {}-{}", role, role, spec.replicas - 1);
  };
  std::vector<ReplicaSpec> with_pods;
  std::copy_if(job.replicas.begin(), job.replicas.end(), std::back_inserter(with_pods),
               [](const ReplicaSpec& spec) { return spec.replicas > 0; });
  bad_input("option", "--fail: the job has no pod '{}'; accepted: {}", printable(failure.target),
            with_pods.empty() ? "none, as it has no pods" : names_in(with_pods, pods_of));
}

/// When the last thing happened: a time-out that nobody waits for any more is nothing.
Seconds last_date(const JobState& state) {
  Seconds last = state.events.empty() ? 0 : state.events.front().first;
  for (const JobEvent& event : state.events) last = std::max(last, event.last);
  for (const Pod& pod : state.pods) {
    last = std::max({last, pod.stages.back().date, pod.deleted.value_or(0)});
  }
  return last;
}

/// Whether something is still to happen to a pod: it is there, has not ended and could do so.
bool is_under_way(const Pod& pod) { return pod.is_live() && !pod.has_ended() && pod.why.empty(); }

/// What a pod waits for whose container does not run; empty for others.
std::string wait_of(const Pod& pod) {
  if (!pod.is_live()) return {};
  if (!pod.why.empty()) return fmt::format("pod {} is Pending: {}", pod.name, pod.why);
  switch (pod.stage()) {
    case PodStage::creating:
      return fmt::format("pod {} is Pending: its container is made", pod.name);
    case PodStage::backing_off:
      return fmt::format("pod {} is in back-off: its container ended with exit code {} and is to be started again",
                         pod.name, pod.exit_code.value());
    case PodStage::unreachable:
      return fmt::format("the server of pod {} is lost, which nobody has noticed yet", pod.name);
    default:
      return {};
  }
}

/// The parts of a simulated Kubernetes with one job, wired together.
class JobSimulation {
 public:
  JobSimulation(const MsJob& job, const std::vector<JobServer>& servers, const JobScenario& scenario,
                const StepTime& step_time)
      : scenario_(scenario),
        state_(job),
        training_(state_, scenario.plan, step_time, [this](Pod& pod, std::int32_t code) { nodes_.exit(pod, code); }),
        nodes_(state_, ServerPool(servers, scenario.packing), scenario.delays,
               {[this](Pod& pod) { training_.up(pod); }, [this](Pod& pod) { training_.gone(pod); }}),
        operator_(state_, scenario.gang || job.policy.scheduling.has_value(),
                  [this](Pod& pod) { nodes_.remove(pod); }) {
    for (const JobFailure& failure : scenario.failures) {
      check_failure(failure, job, servers);
      state_.clock.at(failure.date, [this, failure] { nodes_.fail(failure); });
    }
  }

  JobOutcome run() {
    state_.clock.at(0, [] {});  // the job appears
    while (!state_.deleted && state_.clock.advance(scenario_.until)) settle();
    JobOutcome outcome;
    outcome.status = state_.status;
    outcome.counters = state_.counters;
    outcome.deleted = state_.deleted;
    const bool finished = state_.status.is_finished();
    const bool all = state_.deleted || state_.clock.empty();
    const bool cut_off = !all && (!finished || std::any_of(state_.pods.begin(), state_.pods.end(), is_under_way));
    outcome.end = cut_off ? scenario_.until : last_date(state_);
    outcome.ending = finished ? JobEnding::finished : all ? JobEnding::stuck : JobEnding::out_of_time;
    if (!finished) outcome.waits = waits();
    training_.stop(outcome.end);
    outcome.pods = std::move(state_.pods);
    outcome.services = std::move(state_.services);
    outcome.pod_group = std::move(state_.pod_group);
    outcome.events = std::move(state_.events);
    outcome.runs = training_.runs();
    return outcome;
  }

 private:
  /// The operator and the scheduler of Kubernetes act at once, when all that happens at a date has happened.
  void settle() {
    bool changed = true;
    while (changed) {
      changed = operator_.reconcile();
      changed = nodes_.schedule() || changed;
    }
  }

  [[nodiscard]] std::vector<std::string> waits() const {
    std::vector<std::string> waits;
    if (state_.pod_group.has_value() && state_.pod_group->phase == PodGroup::Phase::pending) {
      waits.push_back("the pod group is Pending: " + state_.pod_group->why);
    }
    for (const Pod& pod : state_.pods) {
      if (std::string sentence = wait_of(pod); !sentence.empty()) waits.push_back(std::move(sentence));
    }
    for (std::string& sentence : training_.waits()) waits.push_back(std::move(sentence));
    if (training_.is_under_way()) waits.emplace_back("training is under way");
    if (state_.job.of(JobRole::worker) == nullptr) {
      waits.emplace_back("the job has no workers, and only workers make a job succeed");
    }
    for (const Pod& pod : state_.pods) {
      if (waits.empty() && pod.is_live() && pod.stage() == PodStage::failed) {
        waits.push_back(fmt::format("pod {} has failed, and nobody restarts it", pod.name));
      }
    }
    for (const Pod& pod : state_.pods) {
      if (waits.empty() && pod.is_live() && pod.runs()) {
        waits.push_back(fmt::format("the process of pod {} starts, or is to be told what to do", pod.name));
      }
    }
    return waits;
  }

  const JobScenario& scenario_;
  JobState state_;
  JobTraining training_;
  Nodes nodes_;
  JobOperator operator_;
};

}  // namespace

JobOutcome simulate_job(const MsJob& job, const std::vector<JobServer>& servers, const JobScenario& scenario,
                        const StepTime& step_time) {
  return JobSimulation(job, servers, scenario, step_time).run();
}

}  // namespace hcclsim::study
