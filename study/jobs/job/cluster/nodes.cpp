#include "study/jobs/job/cluster/nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hcclsim::study {
namespace {

constexpr Seconds longest_back_off = 300;
constexpr Seconds long_run = 600;  // after which a container starts anew without back-off

bool restarts_container(RestartPolicy policy, std::int32_t code) {
  return policy == RestartPolicy::always || (policy == RestartPolicy::on_failure && code != 0);
}

bool waits_for_server(const Pod& pod) { return pod.is_live() && pod.stage() == PodStage::unscheduled; }

}  // namespace

void Nodes::after(Seconds time, Pod& pod, std::function<void()> step) {
  state_.clock.at(state_.now() + time, [&pod, changes = pod.stages.size(), step = std::move(step)] {
    if (pod.is_live() && pod.stages.size() == changes) step();
  });
}

/// Whether the group may leave Pending: its least resources are there.
bool Nodes::enqueue_group() {
  PodGroup& group = *state_.pod_group;
  if (group.phase != PodGroup::Phase::pending) return false;
  const std::optional<std::string> lacking = pool_.lacking(group.min_resources);
  if (lacking.has_value()) {
    group.why = fmt::format("minResources: the servers have not enough {} free", *lacking);
    return false;
  }
  group.phase = PodGroup::Phase::inqueue;
  group.why.clear();
  return true;
}

/// Whether fewer pods than the group needs have a server or could get one now.
bool Nodes::holds_gang() const {
  ServerPool trial = pool_;
  std::uint32_t placed = 0;
  for (const Pod& pod : state_.pods) {
    if (!pod.is_live() || pod.stage() == PodStage::failed) continue;
    if (!waits_for_server(pod) || trial.place(state_.template_of(pod)).has_value()) ++placed;
  }
  return placed < state_.pod_group->min_member;
}

std::string Nodes::why_held() const {
  Resources needed;
  for (const Pod& pod : state_.pods) {
    if (!waits_for_server(pod)) continue;
    for (const auto& [resource, amount] : state_.template_of(pod).needed) needed[resource] += amount;
  }
  const std::optional<std::string> lacking = pool_.lacking(needed);
  return fmt::format("pod group is not ready: fewer than its {} pods fit at the same time{}",
                     state_.pod_group->min_member,
                     lacking.has_value() ? fmt::format(" (all that wait need more {} than is free)", *lacking) : "");
}

bool Nodes::schedule() {
  const bool gang = state_.pod_group.has_value() && !state_.pod_group->deleted.has_value();
  if (gang && enqueue_group()) return true;
  if (std::none_of(state_.pods.begin(), state_.pods.end(), waits_for_server)) return false;
  const bool held = gang && holds_gang();
  bool any = false;
  for (Pod& pod : state_.pods) {
    if (!waits_for_server(pod)) continue;
    std::optional<PodSeat> seat;
    if (!held) seat = pool_.place(state_.template_of(pod));
    if (seat.has_value()) {
      bind(pod, *std::move(seat));
      any = true;
      continue;
    }
    std::string why = held ? why_held() : pool_.why_not(state_.template_of(pod));
    if (pod.why != why) state_.warn(JobState::object_of(pod), "FailedScheduling", why);
    pod.why = std::move(why);
  }
  if (gang && any) state_.pod_group->phase = PodGroup::Phase::running;
  return any;
}

void Nodes::bind(Pod& pod, PodSeat seat) {
  const std::uint32_t server = seat.server;
  constexpr std::uint32_t most_numbers = 256;
  constexpr std::uint32_t first_second = 128;
  pod.ip = fmt::format("10.{}.{}.{}", first_second + server / most_numbers, server % most_numbers, seat.slot + 2);
  for (auto& [variable, value] : pod.environment) {
    if (pod.role == JobRole::scheduler && variable == "MS_SCHED_HOST" && value.empty()) value = pod.ip;
  }
  pod.seat = std::move(seat);
  pod.why.clear();
  state_.tell(
      JobState::object_of(pod), "Scheduled",
      fmt::format("Successfully assigned {}/{} to {}", state_.job.name_space, pod.name, pool_.server(server).name));
  pod.enter(state_.now(), PodStage::creating);
  pull_images(pod);
}

void Nodes::pull_images(Pod& pod) {
  Seconds there = state_.now();
  for (const JobContainer& container : state_.template_of(pod).containers) {
    const auto found = images_.find({pod.seat->server, container.image});
    if (found != images_.end()) {
      there = std::max(there, found->second);
      continue;
    }
    if (delays_.image_pull == 0) continue;
    if (container.pull == ImagePull::never) {
      pod.why = fmt::format("image {} is not on the server, and is never to be pulled", container.image);
      state_.warn(JobState::object_of(pod), "ErrImageNeverPull", pod.why);
      return;
    }
    state_.tell(JobState::object_of(pod), "Pulling", fmt::format("Pulling image {}", container.image));
    const Seconds pulled = state_.now() + delays_.image_pull;
    images_[{pod.seat->server, container.image}] = pulled;
    there = std::max(there, pulled);
  }
  after(there - state_.now() + delays_.container_start, pod, [this, &pod] { start_container(pod); });
}

void Nodes::start_container(Pod& pod) {
  ++pod.starts;
  pod.started = state_.now();
  state_.tell(JobState::object_of(pod), "Started", fmt::format("Started container {}", mindspore_container));
  pod.enter(state_.now(), PodStage::waiting);
  after(delays_.process_start, pod, [this, &pod] { listener_.up(pod); });
}

void Nodes::exit(Pod& pod, std::int32_t code) {
  pod.exit_code = code;
  if (!restarts_container(state_.job.of(pod.role)->restart, code)) {
    end_pod(pod, code == 0 ? PodStage::succeeded : PodStage::failed);
    return;
  }
  if (state_.now() - pod.started >= long_run) pod.back_offs = 0;
  const Seconds wait = std::min(longest_back_off, std::ldexp(delays_.back_off, static_cast<int>(pod.back_offs)));
  constexpr std::uint32_t enough = 16;
  pod.back_offs = std::min(pod.back_offs + 1, enough);
  state_.warn(JobState::object_of(pod), "BackOff",
              fmt::format("Back-off restarting container {} that ended with exit code {}", mindspore_container, code));
  pod.enter(state_.now(), PodStage::backing_off);
  after(wait, pod, [this, &pod] { start_container(pod); });
}

void Nodes::end_pod(Pod& pod, PodStage stage) {
  pool_.release(*pod.seat, state_.template_of(pod));
  pod.enter(state_.now(), stage);
}

void Nodes::remove(Pod& pod) {
  if (pod.runs()) {
    state_.tell(JobState::object_of(pod), "Killing", fmt::format("Stopping container {}", mindspore_container));
  }
  const bool ran = pod.runs();
  pod.deleted = state_.now();
  if (ran) listener_.gone(pod);
  if (pod.seat.has_value() && !pod.has_ended()) pool_.release(*pod.seat, state_.template_of(pod));
}

void Nodes::fail(const JobFailure& failure) {
  if (failure.kind == JobFailure::Kind::host) {
    lose_server(pool_.find(failure.target).value());
    return;
  }
  const std::string prefix = state_.job.name + '-';
  Pod* const pod = state_.live_pod(failure.target.starts_with(prefix) ? failure.target : prefix + failure.target);
  if (pod == nullptr || !pod->runs()) {
    state_.warn(
        state_.job_object(), "FailureWithoutEffect",
        fmt::format("no container of {} runs that could end with exit code {}", failure.target, failure.exit_code));
    return;
  }
  listener_.gone(*pod);
  exit(*pod, failure.exit_code);
}

void Nodes::lose_server(std::uint32_t server) {
  pool_.lose(server);
  state_.warn("node/" + pool_.server(server).name, "NodeNotReady", "the server is lost");
  std::vector<Pod*> lost;
  for (Pod& pod : state_.pods) {
    if (pod.is_live() && pod.seat.has_value() && pod.seat->server == server && !pod.has_ended()) lost.push_back(&pod);
  }
  for (Pod* const pod : lost) {
    const bool ran = pod->runs();
    pod->enter(state_.now(), PodStage::unreachable);
    if (ran) listener_.gone(*pod);
    after(delays_.node_time_out, *pod, [this, pod] { give_up(*pod); });
  }
}

void Nodes::give_up(Pod& pod) {
  pod.exit_code = unknown_exit_code;
  state_.warn(
      JobState::object_of(pod), "NodeLost",
      fmt::format("nothing was heard of its server for {:g} s; its exit code is not known", delays_.node_time_out));
  end_pod(pod, PodStage::failed);
}

}  // namespace hcclsim::study
