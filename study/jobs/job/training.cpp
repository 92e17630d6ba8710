#include "study/jobs/job/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr std::int32_t exception_exit_code = 1;

/// The first date from `begin` on, in steps of the interval, that is not before `date`.
Seconds next_check(Seconds begin, Seconds date) {
  return begin + std::max(0.0, std::ceil((date - begin) / heartbeat_interval)) * heartbeat_interval;
}

/// Empty for a pod whose container is still to run.
std::string_view why_not_registered(PodStage stage) {
  switch (stage) {
    case PodStage::waiting:
      return "has not registered";
    case PodStage::succeeded:
      return "has succeeded and is not started again";
    case PodStage::failed:
      return "has failed and is not started again";
    default:
      return {};
  }
}

std::string of_cluster(const MsJob& job) { return "cluster/" + job.name; }

}  // namespace

JobTraining::JobTraining(JobState& state, const TrainingPlan& plan, StepTime step_time,
                         std::function<void(Pod&, std::int32_t)> exit)
    : state_(state), plan_(plan), step_time_(std::move(step_time)), exit_(std::move(exit)) {}

Seconds JobTraining::seconds_of(JobRole role, std::string_view variable, Seconds otherwise) const {
  const std::string* const text = state_.job.of(role)->pod.variable(variable);
  return text == nullptr ? otherwise : parse_number<std::uint32_t>(*text).value();
}

/// Recovery is of all processes or of none.
bool JobTraining::recovers() const {
  return std::all_of(state_.job.replicas.begin(), state_.job.replicas.end(), [](const ReplicaSpec& spec) {
    const std::string* const text = spec.pod.variable("MS_ENABLE_RECOVERY");
    return text != nullptr && *text == "1";
  });
}

// --- Steps

void JobTraining::start(Progress& progress, TrainingHosts hosts, const std::string& worker,
                        std::function<void()> done) {
  const StepTimes times = step_time_(hosts);
  const std::uint64_t left = plan_.steps - progress.saved;
  progress.run = runs_.size();
  runs_.push_back({.worker = worker,
                   .start = state_.now(),
                   .step_times = times,
                   .first_step = progress.saved,
                   .hosts = std::move(hosts)});
  state_.clock.at(state_.now() + times.of(progress.saved, left),
                  [this, run = *progress.run, &progress, left, done = std::move(done)] {
                    if (progress.run != run) return;
                    runs_[run].end = state_.now();
                    runs_[run].steps = left;
                    runs_[run].why_ended = "all steps done";
                    progress = {};
                    done();
                  });
}

void JobTraining::interrupt(Progress& progress, Seconds date, const std::string& why) {
  if (!progress.run.has_value()) return;
  TrainingRun& run = runs_[*progress.run];
  run.end = date;
  const std::uint64_t left = plan_.steps - run.first_step;
  // A step that ends at this very date is done, whatever its multiple is rounded to.
  constexpr double rounding = 1e-9;
  const double steps = run.step_times.done_in(run.first_step, date - run.start) * (1 + rounding);
  run.steps = static_cast<std::uint64_t>(std::min(static_cast<double>(left), steps));
  run.why_ended = why;
  if (plan_.checkpoint_every > 0) {
    const std::uint64_t done = run.first_step + run.steps;
    progress.saved = std::max(progress.saved, done / plan_.checkpoint_every * plan_.checkpoint_every);
  }
  progress.run.reset();
}

void JobTraining::stop(Seconds date) {
  interrupt(together_, date, "the simulation ends");
  for (auto& [name, progress] : alone_) interrupt(progress, date, "the simulation ends");
}

// --- Processes

void JobTraining::up(Pod& pod) {
  if (state_.job.of(JobRole::scheduler) == nullptr) {
    if (pod.role != JobRole::worker) return;  // nobody has told it what it is to do
    pod.enter(state_.now(), PodStage::training);
    start(alone_[pod.name], {pod.seat->npus, {pod.seat->server}, {}}, pod.name, [this, &pod] { exit_(pod, 0); });
    return;
  }
  if (const std::string wrong = wrong_configuration(); !wrong.empty()) {
    state_.warn(JobState::object_of(pod), "Exception", wrong);
    exit_(pod, exception_exit_code);
    return;
  }
  wait_for_cluster(pod);
  register_processes();
}

std::string JobTraining::wrong_configuration() const {
  const std::uint16_t port = state_.job.of(JobRole::scheduler)->pod.port();
  if (port < least_scheduler_port) {
    return fmt::format("MS_SCHED_PORT is {}; accepted: {} to 65535", port, least_scheduler_port);
  }
  if (state_.job.of(JobRole::ps) == nullptr) return {};
  if (state_.job.replicas_of(JobRole::worker) > 0 && state_.job.replicas_of(JobRole::ps) > 0) return {};
  return fmt::format("MS_WORKER_NUM is {} and MS_SERVER_NUM is {}: with parameter servers neither may be 0",
                     state_.job.replicas_of(JobRole::worker), state_.job.replicas_of(JobRole::ps));
}

void JobTraining::gone(Pod& pod) {
  std::erase(waiting_, &pod);
  if (const auto alone = alone_.find(pod.name); alone != alone_.end())
    interrupt(alone->second, state_.now(), pod.name + " is gone");
  const auto found = members_.find(pod.name);
  if (found == members_.end() || found->second.pod != &pod || found->second.lost.has_value()) return;
  if (phase_ == Phase::training || phase_ == Phase::broken) {
    lose_member(found->second);
    if (!nobody_is_left() || recovers()) return;
    forget();  // whoever waits forms another cluster
    register_processes();
    return;
  }
  members_.erase(found);
  std::erase(order_, pod.name);
  if (pod.role != JobRole::scheduler || phase_ == Phase::leaving) return;
  for (const std::string& name : order_) waiting_.push_back(members_.at(name).pod);
  members_.clear();
  order_.clear();
}

// --- The cluster comes together

void JobTraining::wait_for_cluster(Pod& pod) {
  waiting_.push_back(&pod);
  const Seconds time_out = seconds_of(pod.role, "MS_TOPO_TIMEOUT", topology_time_out);
  state_.clock.at(next_check(state_.now(), state_.now() + time_out), [this, &pod, start = pod.starts] {
    if (pod.is_live() && pod.starts == start && pod.runs()) time_out_topology(pod);
  });
}

/// Whether the scheduler takes it now: of a job with several schedulers only the first one is known to others. A
/// process that was started again has the place of the lost one if recovery is on.
bool JobTraining::may_register(const Pod& pod) const {
  if (pod.role == JobRole::scheduler && pod.index > 0) return false;
  const bool scheduler = pod.role == JobRole::scheduler || !members_of(JobRole::scheduler).empty();
  if (phase_ == Phase::forming) return scheduler;
  const auto found = members_.find(pod.name);
  return phase_ == Phase::broken && recovers() && scheduler && found != members_.end() &&
         found->second.lost.has_value();
}

void JobTraining::register_processes() {
  std::sort(waiting_.begin(), waiting_.end(),
            [](const Pod* a, const Pod* b) { return std::pair(a->role, a->index) < std::pair(b->role, b->index); });
  const std::vector<Pod*> processes = waiting_;
  for (Pod* const pod : processes) {
    if (!may_register(*pod)) continue;
    std::erase(waiting_, pod);
    if (!members_.contains(pod->name)) order_.push_back(pod->name);
    members_[pod->name] = {pod, state_.now(), {}};
  }
  if ((phase_ == Phase::forming || phase_ == Phase::broken) && all_registered()) start_together();
}

std::vector<Pod*> JobTraining::members_of(JobRole role) const {
  std::vector<Pod*> pods;
  for (const std::string& name : order_) {
    const Member& member = members_.at(name);
    if (member.pod->role == role && !member.lost.has_value()) pods.push_back(member.pod);
  }
  return pods;
}

bool JobTraining::all_registered() const {
  return !members_of(JobRole::scheduler).empty() &&
         members_of(JobRole::worker).size() == state_.job.replicas_of(JobRole::worker) &&
         members_of(JobRole::ps).size() == state_.job.replicas_of(JobRole::ps);
}

void JobTraining::start_together() {
  phase_ = Phase::training;
  ready_ = state_.now();
  TrainingHosts hosts;
  for (Pod* const worker : members_of(JobRole::worker)) {
    hosts.npus.insert(hosts.npus.end(), worker->seat->npus.begin(), worker->seat->npus.end());
    hosts.workers.push_back(worker->seat->server);
  }
  for (Pod* const server : members_of(JobRole::ps)) hosts.parameter_servers.push_back(server->seat->server);
  state_.tell(of_cluster(state_.job), "Ready",
              fmt::format("the scheduler, {} workers and {} servers have registered", hosts.workers.size(),
                          hosts.parameter_servers.size()));
  if (hosts.workers.empty()) {
    finish_together();
    return;
  }
  for (const JobRole role : {JobRole::worker, JobRole::ps}) {
    for (Pod* const pod : members_of(role)) pod->enter(state_.now(), PodStage::training);
  }
  start(together_, std::move(hosts), "", [this] { finish_together(); });
}

// --- … and apart

/// Workers end when their steps are done, servers and the scheduler when it next looks.
void JobTraining::finish_together() {
  phase_ = Phase::leaving;
  for (Pod* const worker : members_of(JobRole::worker)) {
    members_.erase(worker->name);
    std::erase(order_, worker->name);
    exit_(*worker, 0);
  }
  for (Pod* const server : members_of(JobRole::ps)) server->enter(state_.now(), PodStage::waiting);
  state_.clock.at(next_check(ready_, state_.now()), [this] { leave(); });
}

void JobTraining::leave() {
  std::vector<Pod*> leaving = members_of(JobRole::ps);
  for (Pod* const scheduler : members_of(JobRole::scheduler)) leaving.push_back(scheduler);
  forget();
  for (Pod* const pod : leaving) exit_(*pod, 0);
  register_processes();
}

void JobTraining::forget() {
  phase_ = Phase::forming;
  members_.clear();
  order_.clear();
}

/// The scheduler looks for the heartbeats of the others; they all look for its own, and the first to miss it counts.
Seconds JobTraining::time_out_of_loss(const Pod& lost) const {
  const auto of_role = [this](JobRole role) { return seconds_of(role, "MS_NODE_TIMEOUT", node_time_out); };
  if (lost.role != JobRole::scheduler) return of_role(JobRole::scheduler);
  std::optional<Seconds> least;
  for (const JobRole role : {JobRole::ps, JobRole::worker}) {
    if (members_of(role).empty()) continue;
    least = std::min(least.value_or(of_role(role)), of_role(role));
  }
  return least.value_or(of_role(JobRole::scheduler));
}

bool JobTraining::nobody_is_left() const {
  return std::all_of(members_.begin(), members_.end(), [](const auto& one) { return one.second.lost.has_value(); });
}

std::vector<std::string> JobTraining::waits() const {
  if (phase_ == Phase::forming) return waits_for_registrations();
  std::vector<std::string> waits;
  if (phase_ != Phase::broken) return waits;
  for (const auto& [name, member] : members_) {
    if (!member.lost.has_value()) continue;
    const Pod* const pod = state_.live_pod(name);
    const bool comes = pod != nullptr && !pod->has_ended();
    waits.push_back(recovers() ? fmt::format("the cluster waits for {}, which {}", name,
                                             comes ? "is to be started again" : "is gone and which nobody restarts")
                               : fmt::format("{} is gone, and the others have not missed it yet", name));
  }
  return waits;
}

/// Of the processes that have not registered those that others wait for. Pods whose container does not run say
/// themselves what they wait for.
std::vector<std::string> JobTraining::waits_for_registrations() const {
  std::vector<std::string> waits;
  if (waiting_.empty() && members_.empty()) return waits;
  for (const Pod& pod : state_.pods) {
    if (!pod.is_live() || members_.contains(pod.name) || (pod.role == JobRole::scheduler && pod.index > 0)) continue;
    if (std::find(waiting_.begin(), waiting_.end(), &pod) != waiting_.end()) continue;
    const std::string_view why = why_not_registered(pod.stage());
    if (!why.empty()) waits.push_back(fmt::format("the cluster waits for {}, which {}", pod.name, why));
  }
  return waits;
}

bool JobTraining::is_under_way() const {
  return together_.run.has_value() ||
         std::any_of(alone_.begin(), alone_.end(), [](const auto& one) { return one.second.run.has_value(); });
}

void JobTraining::lose_member(Member& member) {
  const Seconds now = state_.now();
  const std::string& name = member.pod->name;
  interrupt(together_, now, name + " is gone");
  for (const JobRole role : {JobRole::worker, JobRole::ps}) {
    for (Pod* const pod : members_of(role)) {
      if (pod != member.pod && pod->stage() == PodStage::training) pod->enter(now, PodStage::waiting);
    }
  }
  phase_ = Phase::broken;
  member.lost = now;
  const Seconds last_beat =
      member.registered + std::floor((now - member.registered) / heartbeat_interval) * heartbeat_interval;
  const Seconds noticed = next_check(ready_, last_beat + time_out_of_loss(*member.pod));
  state_.clock.at(std::max(now, noticed), [this, name, now] { miss_heartbeats(name, now); });
}

void JobTraining::miss_heartbeats(const std::string& name, Seconds lost) {
  const auto found = members_.find(name);
  if (phase_ != Phase::broken || found == members_.end() || found->second.lost != lost || nobody_is_left()) return;
  if (recovers()) {
    state_.warn(of_cluster(state_.job), "NodeTimeout",
                fmt::format("nothing was heard of {}; recovery is on: the others wait for it", name));
    return;
  }
  end_all("NodeTimeout", fmt::format("nothing was heard of {}: all others end", name));
}

/// An exception in all processes.
void JobTraining::end_all(const std::string& reason, const std::string& message) {
  state_.warn(of_cluster(state_.job), reason, message);
  const auto of_another_cluster = [](const Pod* pod) { return pod->role == JobRole::scheduler && pod->index > 0; };
  std::vector<Pod*> processes;
  std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(processes), std::not_fn(of_another_cluster));
  std::erase_if(waiting_, std::not_fn(of_another_cluster));
  for (const JobRole role : all_job_roles) {
    for (Pod* const pod : members_of(role)) processes.push_back(pod);
  }
  forget();
  std::sort(processes.begin(), processes.end(),
            [](const Pod* a, const Pod* b) { return std::pair(a->role, a->index) < std::pair(b->role, b->index); });
  for (Pod* const pod : processes) exit_(*pod, exception_exit_code);
}

void JobTraining::time_out_topology(Pod& pod) {
  const bool waits = std::find(waiting_.begin(), waiting_.end(), &pod) != waiting_.end();
  const bool forming = phase_ == Phase::forming && members_.contains(pod.name);
  if (!waits && !forming) return;
  const std::string message = fmt::format("the cluster has not come together in {:g} s",
                                          seconds_of(pod.role, "MS_TOPO_TIMEOUT", topology_time_out));
  if (forming && pod.role == JobRole::scheduler) {
    end_all("TopologyTimeout", message + ": all end");
    return;
  }
  // One that waits may have the name of a lost member, which the others have still to miss.
  if (waits) {
    std::erase(waiting_, &pod);
  } else {
    members_.erase(pod.name);
    std::erase(order_, pod.name);
  }
  state_.warn(JobState::object_of(pod), "TopologyTimeout", message);
  exit_(pod, exception_exit_code);
}

}  // namespace hcclsim::study
