#include "study/jobs/job/cluster/job_operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hcclsim::study {
namespace {

using Type = JobConditionType;

/// Exit codes of processes that a signal ended (the convention of kubeflow's library).
bool is_retryable(std::int32_t exit_code) {
  constexpr std::int32_t first_signal = 128;
  return exit_code >= first_signal;
}

}  // namespace

JobOperator::JobOperator(JobState& state, bool gang, std::function<void(Pod&)> remove)
    : state_(state), gang_(gang), remove_(std::move(remove)) {}

bool JobOperator::reconcile() {
  if (state_.deleted) return false;
  if (state_.status.conditions.empty()) begin();
  bool changed = false;
  if (state_.status.is_finished()) {
    changed = clean_up();
  } else if (const std::string exceeded = limit_exceeded(); !exceeded.empty()) {
    changed = end(Type::failed, "JobFailed", exceeded);
  } else {
    changed = gang_ && sync_pod_group();
    if (!gang_ || state_.pod_group->phase != PodGroup::Phase::pending) {
      restarted_ = false;
      const std::array<ReplicaStatus, job_roles> before = state_.status.replicas;
      state_.status.replicas = {};
      changed = sync_services() || changed;
      for (const ReplicaSpec& spec : state_.job.replicas) changed = sync_pods(spec) || changed;
      changed = update_status() || changed || before != state_.status.replicas;
    }
  }
  if (changed) state_.status.last_reconcile = state_.now();
  return changed;
}

void JobOperator::begin() {
  ++state_.counters.created;
  const std::string message = fmt::format("MSJob {} is created.", state_.job.name);
  state_.status.set(state_.now(), Type::created, "MSJobCreated", message);
  state_.status.start = state_.now();
  state_.status.last_reconcile = state_.now();
  state_.tell(state_.job_object(), "MSJobCreated", message);
  if (const auto& deadline = state_.job.policy.active_deadline; deadline.has_value()) {
    state_.clock.at(state_.now() + *deadline, [] {});  // a round is due
  }
}

// --- The end

/// Of a finished job: pods and services go as cleanPodPolicy says, and after its time to live the job itself.
bool JobOperator::clean_up() {
  if (!cleaned_) {
    cleaned_ = true;
    const CleanPodPolicy policy = state_.job.policy.clean_pods;
    for (Pod& pod : state_.pods) {
      if (!pod.is_live() || policy == CleanPodPolicy::none) continue;
      if (policy == CleanPodPolicy::all || !pod.has_ended()) delete_pod(pod);
    }
    if (state_.pod_group.has_value()) {
      state_.tell(state_.job_object(), "JobTerminated", "Job has been terminated. Deleting PodGroup");
      state_.pod_group->deleted = state_.now();
      state_.tell(state_.job_object(), "SuccessfulDeletePodGroup", "Deleted PodGroup: " + state_.job.name);
    }
    if (state_.status.has(Type::succeeded)) {
      for (ReplicaStatus& replica : state_.status.replicas) {
        replica.succeeded += std::exchange(replica.active, 0);
      }
    }
    if (const auto& ttl = state_.job.policy.ttl_after_finished; ttl.has_value()) {
      state_.clock.at(*state_.status.completion + *ttl, [] {});  // a round is due
    }
    return true;
  }
  const auto& ttl = state_.job.policy.ttl_after_finished;
  if (!ttl.has_value() || state_.now() < *state_.status.completion + *ttl) return false;
  for (Pod& pod : state_.pods) {
    if (pod.is_live()) delete_pod(pod);
  }
  state_.deleted = true;
  ++state_.counters.deleted;
  state_.tell(state_.job_object(), "SuccessfulDeleteJob", "Deleted job: " + state_.job.name);
  return true;
}

/// A pod, and its service, which has the same name.
void JobOperator::delete_pod(Pod& pod) {
  remove_(pod);
  state_.tell(state_.job_object(), "SuccessfulDeletePod", "Deleted pod: " + pod.name);
  for (JobService& service : state_.services) {
    if (service.name != pod.name || service.deleted.has_value() || !state_.status.is_finished()) continue;
    service.deleted = state_.now();
    state_.tell(state_.job_object(), "SuccessfulDeleteService", "Deleted service: " + service.name);
  }
}

bool JobOperator::end(JobConditionType type, const std::string& reason, const std::string& message) {
  if (state_.status.is_finished()) return false;
  state_.status.set(state_.now(), type, reason, message);
  state_.status.completion = state_.now();
  ++(type == Type::succeeded ? state_.counters.succeeded : state_.counters.failed);
  state_.tell(state_.job_object(), reason, message);
  return true;
}

/// Restarts of containers by the kubelet, and of pods by the operator.
std::uint32_t JobOperator::retries() const {
  std::uint32_t retries = recreated_;
  for (const Pod& pod : state_.pods) {
    if (pod.is_live()) retries += pod.restarts();
  }
  return retries;
}

/// The library of kubeflow fails a job at its limit of retries, not after it; a limit of 0 allows no retry either.
std::string JobOperator::limit_exceeded() const {
  const RunPolicy& policy = state_.job.policy;
  if (policy.backoff_limit.has_value() && retries() >= std::max(*policy.backoff_limit, 1U)) {
    return fmt::format("Job {} has failed because it has reached the specified backoff limit", state_.job.name);
  }
  if (policy.active_deadline.has_value() && state_.now() >= *state_.status.start + *policy.active_deadline) {
    return fmt::format("Job {} has failed because it was active longer than specified deadline", state_.job.name);
  }
  return {};
}

// --- What is missing

bool JobOperator::sync_pod_group() {
  if (state_.pod_group.has_value()) return false;
  PodGroup group;
  group.min_member = state_.job.pods();
  group.created = state_.now();
  if (const auto& scheduling = state_.job.policy.scheduling; scheduling.has_value()) {
    group.min_member = scheduling->min_available.value_or(group.min_member);
    group.min_resources = scheduling->min_resources;
  }
  state_.tell(state_.job_object(), "SuccessfulCreatePodGroup",
              fmt::format("Created pod group: {}, minMember {}", state_.job.name, group.min_member));
  state_.pod_group = std::move(group);
  return true;
}

/// One of each scheduler; no other role has one.
bool JobOperator::sync_services() {
  bool changed = false;
  const ReplicaSpec* const spec = state_.job.of(JobRole::scheduler);
  for (std::uint32_t index = 0; spec != nullptr && index < spec->replicas; ++index) {
    if (state_.live_service(index) != nullptr) continue;
    constexpr std::uint32_t most_addresses = 250;
    const std::string name = pod_name(state_.job, JobRole::scheduler, index);
    state_.services.push_back(
        {.name = name,
         .index = index,
         .cluster_ip = fmt::format("10.96.{}.{}", 1 + index / most_addresses, 1 + index % most_addresses),
         .port = spec->pod.port(),
         .created = state_.now()});
    state_.tell(state_.job_object(), "SuccessfulCreateService", "Created service: " + name);
    changed = true;
  }
  return changed;
}

bool JobOperator::sync_pods(const ReplicaSpec& spec) {
  std::vector<std::vector<Pod*>> at_index(spec.replicas);
  bool changed = false;
  for (Pod& pod : state_.pods) {
    if (!pod.is_live() || pod.role != spec.role) continue;
    if (pod.index < spec.replicas) {
      at_index[pod.index].push_back(&pod);
    } else {
      delete_pod(pod);
      changed = true;
    }
  }
  for (std::uint32_t index = 0; index < spec.replicas; ++index) {
    if (at_index[index].empty()) {
      create_pod(spec, index);
      changed = true;
    } else if (at_index[index].size() > 1) {
      state_.warn(state_.job_object(), "TooManyPods",
                  fmt::format("there are {} pods for {} {}", at_index[index].size(), name_of(spec.role), index));
    } else {
      changed = sync_pod(spec, *at_index[index].front()) || changed;
    }
  }
  return changed;
}

void JobOperator::create_pod(const ReplicaSpec& spec, std::uint32_t index) {
  const MsJob& job = state_.job;
  const JobService* const service = state_.live_service(0);
  Pod pod{.role = spec.role, .index = index, .name = pod_name(job, spec.role, index)};
  pod.labels = pod_labels(job, spec.role, index);
  pod.environment = pod_environment(job, spec.role, index, service == nullptr ? "" : service->cluster_ip);
  pod.enter(state_.now(), PodStage::unscheduled);
  warn_of_template(spec, pod.name);
  state_.tell(state_.job_object(), "SuccessfulCreatePod", "Created pod: " + pod.name);
  state_.pods.push_back(std::move(pod));
}

/// What the template sets and the operator overrides.
void JobOperator::warn_of_template(const ReplicaSpec& spec, const std::string& pod) {
  if (!spec.pod.restart_policy.empty()) {
    state_.warn(
        state_.job_object(), "SettedPodTemplateRestartPolicy",
        fmt::format("Restart policy in pod template will be overwritten by restart policy in replica spec: {}", pod));
  }
  const std::string& scheduler = spec.pod.scheduler_name;
  if (!gang_ || scheduler.empty() || scheduler == "volcano") return;
  state_.warn(state_.job_object(), "SettedPodTemplateSchedulerName",
              fmt::format("Another scheduler is specified when gang-scheduling is enabled and it will not be "
                          "overwritten: {}",
                          pod));
}

/// Counts the pod, and deletes it if it failed in a way that is worth another try.
bool JobOperator::sync_pod(const ReplicaSpec& spec, Pod& pod) {
  ReplicaStatus& counts = state_.status.of(spec.role);
  const PodPhase phase = pod.phase();
  counts.active += phase == PodPhase::running ? 1 : 0;
  counts.succeeded += phase == PodPhase::succeeded ? 1 : 0;
  counts.failed += phase == PodPhase::failed ? 1 : 0;
  if (!pod.has_ended()) return false;
  const std::int32_t code = pod.exit_code.value_or(unknown_exit_code);
  if (code != unknown_exit_code && !pod.reported) {
    state_.tell(state_.job_object(), "ExitedWithCode",
                fmt::format("Pod: {}.{} exited with code {}", state_.job.name_space, pod.name, code));
    pod.reported = true;
  }
  if (phase != PodPhase::failed || spec.restart != RestartPolicy::exit_code || !is_retryable(code)) return false;
  delete_pod(pod);
  restarted_ = true;
  ++recreated_;
  ++state_.counters.restarted;
  const std::string message =
      fmt::format("MSJob {} is restarting because {} replica(s) failed.", state_.job.name, name_of(spec.role));
  state_.status.set(state_.now(), Type::restarting, "MSJobRestarting", message);
  state_.warn(state_.job_object(), "MSJobRestarting", message);
  return true;
}

// --- What it comes to

bool JobOperator::update_status() {
  bool changed = false;
  for (const ReplicaSpec& spec : state_.job.replicas) changed = update_status_of(spec) || changed;
  return changed;
}

/// A job without workers counts as one whose worker 0 has completed.
bool JobOperator::worker_0_completed() const {
  const ReplicaSpec* const workers = state_.job.of(JobRole::worker);
  if (workers == nullptr) return true;
  return std::any_of(state_.pods.begin(), state_.pods.end(), [](const Pod& pod) {
    return pod.is_live() && pod.role == JobRole::worker && pod.index == 0 && pod.phase() == PodPhase::succeeded &&
           pod.exit_code == 0;
  });
}

bool JobOperator::update_status_of(const ReplicaSpec& spec) {
  const ReplicaStatus& counts = state_.status.of(spec.role);
  const std::string name = state_.job.name_space + '/' + state_.job.name;
  bool changed = false;
  if (spec.role == JobRole::worker) {
    const std::uint32_t expected = spec.replicas - counts.succeeded;
    if (expected == 0 || (state_.job.success == SuccessPolicy::worker_0 && worker_0_completed())) {
      changed = end(Type::succeeded, "MSJobSucceeded", fmt::format("MSJob {} successfully completed.", name));
    } else if (counts.active > 0 && !restarted_) {
      const std::string message = fmt::format("MSJob {} is running.", name);
      changed = state_.status.set(state_.now(), Type::running, "MSJobRunning", message);
      if (changed) state_.tell(state_.job_object(), "MSJobRunning", message);
    }
  }
  if (counts.failed == 0 || state_.status.has(Type::restarting)) return changed;
  if (state_.job.dynamic_worker && spec.role == JobRole::worker) return changed;
  const std::string message =
      fmt::format("MSJob {} has failed because {} {} replica(s) failed.", name, counts.failed, name_of(spec.role));
  return end(Type::failed, "MSJobFailed", message) || changed;
}

}  // namespace hcclsim::study
