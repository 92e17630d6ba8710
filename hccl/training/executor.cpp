#include "hccl/training/executor.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Throws if a rank of a group does not take part or is in two groups of a family.
void check_groups(const Plan& plan) {
  for (const GroupFamily& family : plan.families) {
    std::vector<bool> is_member(plan.ranks(), false);
    for (const Communicator& group : family.groups) {
      for (const Rank rank : group.ranks) {
        if (rank >= plan.ranks() || is_member[rank]) {
          bad_input("communicator", "{}: rank {} {}", group.name, rank,
                    rank >= plan.ranks() ? "does not take part" : "is in another group of the family too");
        }
        is_member[rank] = true;
      }
    }
  }
}

}  // namespace

PlanExecutor::PlanExecutor(const Plan& plan, Runtime& runtime, sim::Trace& trace, device::Skew skew,
                           std::uint32_t iterations, HostTimes host, IterationEnd on_end, const RankOrbits* orbits,
                           Rank own)
    : plan_(plan),
      runtime_(runtime),
      trace_(trace),
      skew_(std::move(skew)),
      iterations_(iterations),
      host_(std::move(host)),
      on_end_(std::move(on_end)),
      orbits_(orbits),
      simulated_(orbits == nullptr ? plan.ranks() : orbits->orbits()) {
  check_groups(plan);
  for (const GroupFamily& family : plan_.families) join_groups(family, own);
  for (const auto& collective : plan_.collectives) collective_names_.push_back(trace_.intern(collective.name));
  for (const auto& message : plan_.messages) message_names_.push_back(trace_.intern(message.name));
  for (const Role& role : plan_.roles) prepare_role(role);
  ranks_.resize(plan_.role_of.size());
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    if (!is_simulated(rank)) continue;
    const RoleState& role = roles_[plan_.role_of[rank]];
    for (std::size_t stream = 0; stream < role.stream_used.size(); ++stream) {
      ranks_[rank].streams.push_back(runtime_.create_stream(rank));
    }
    for (std::uint32_t event = 0; event < role.events + role.stream_used.size(); ++event) {
      ranks_[rank].events.push_back(runtime_.create_event());
    }
    if (!plan_.role(rank).ahead.empty()) ranks_[rank].events.push_back(runtime_.create_event());
  }
}

/// Makes the communicators of the groups that are there, and notes who does whose part in them.
void PlanExecutor::join_groups(const GroupFamily& family, Rank own) {
  auto& of_ranks = memberships_.emplace_back(plan_.ranks());
  const auto join = [&](std::uint32_t group, const Seats& seats) {
    const CommunicatorId id = runtime_.create_communicator(family.groups[group], seats);
    for (std::size_t place = 0; place < seats.npus.size(); ++place) {
      of_ranks[seats.npus[place]] = {group, seats.members[place], id};
    }
  };
  if (orbits_ == nullptr) {
    for (std::uint32_t group = 0; group < family.groups.size(); ++group) join(group, Seats::all(family.groups[group]));
    return;
  }
  std::vector<const Communicator*> groups;
  for (const Communicator& group : family.groups) groups.push_back(&group);
  for (const auto& [group, seats] : orbits_->fold(groups, own)) join(group, seats);
}

/// Gives an event to every task that another stream waits for.
void PlanExecutor::prepare_role(const Role& role) {
  RoleState state;
  state.event_of.assign(role.tasks.size(), -1);
  state.stream_used.assign(role.streams.size(), false);
  const Machine& machine = runtime_.machine();
  for (const models::Kernel& kernel : role.program->kernels) {
    state.kernels.durations.push_back(kernel.busy());
    state.kernels.names.push_back(trace_.add_name(kernel.name));
    if (machine.shared != nullptr) state.kernels.demands.push_back(device::memory_demand(kernel, machine.soc));
  }
  const auto waits = [](const models::Kernel& kernel) { return kernel.idle > 0; };
  if (std::ranges::any_of(role.program->kernels, waits)) {
    for (const models::Kernel& kernel : role.program->kernels) state.kernels.idles.push_back(kernel.idle);
  }
  for (const PlanTask& task : role.tasks) {
    state.stream_used[task.stream] = true;
    for (const std::uint32_t before : task.after) {
      if (role.tasks[before].stream == task.stream || state.event_of[before] >= 0) continue;
      state.event_of[before] = static_cast<std::int32_t>(state.events);
      state.events += std::max(1U, role.lead(role.tasks[before].stream));
    }
  }
  roles_.push_back(std::move(state));
}

void PlanExecutor::start() {
  for (Rank rank = 0; rank < ranks_.size(); ++rank) {
    if (!is_simulated(rank)) continue;
    const Seconds start = skew_.start(rank);
    const StreamId first = ranks_[rank].streams.front();
    if (start > 0) runtime_.delay(first, start);
    if (host_.kernel > 0) ranks_[rank].host = start;
    // The host of an NPU that is late is late, too.
    if (const sim::FaultPlan* faults = runtime_.machine().faults) {
      ranks_[rank].host = std::max(ranks_[rank].host, faults->begins(rank));
    }
    fill_ahead(rank);
    if (skew_.goes_on()) {
      // As behind an iteration: hosts issue collectives from this date on.
      runtime_.host_function(first, [this, rank] { start_iteration(rank, 0); });
    } else {
      start_iteration(rank, 0);
    }
  }
}

void PlanExecutor::start_iteration(Rank rank, std::uint32_t iteration) {
  const Role& role = plan_.role(rank);
  const RoleState& role_state = roles_[plan_.role_of[rank]];
  waited_.assign(role_state.stream_used.size() * role_state.events, false);
  for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
    const PlanTask& task = role.tasks[number];
    if (task.steps.contains(iteration) && role.lead(task.stream) == 0) enqueue(rank, iteration, number);
  }

  // Stream 0 waits for all others; then the iteration has ended.
  const RankState& state = ranks_[rank];
  for (std::uint32_t stream = 1; stream < state.streams.size(); ++stream) {
    if (!role_state.stream_used[stream] || role.lead(stream) > 0) continue;
    const EventId end = state.events[role_state.events + stream];
    runtime_.record(state.streams[stream], end);
    runtime_.wait(state.streams.front(), end);
  }
  runtime_.host_function(state.streams.front(), [this, rank, iteration] { end_iteration(rank, iteration); });
  run_ahead(rank, iteration);
}

/// Training goes on behind the last iteration that is simulated, and so do these streams.
void PlanExecutor::run_ahead(Rank rank, std::uint32_t iteration) {
  const Role& role = plan_.role(rank);
  if (role.ahead.empty()) return;
  const RankState& state = ranks_[rank];
  for (std::uint32_t stream = 0; stream < state.streams.size(); ++stream) {
    if (role.lead(stream) > 0) runtime_.wait(state.streams[stream], state.events.back());
  }
  for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
    const std::uint32_t lead = role.lead(role.tasks[number].stream);
    if (lead == 0 || !role.tasks[number].steps.contains(iteration + lead)) continue;
    enqueue(rank, iteration + lead, number);
  }
}

void PlanExecutor::fill_ahead(Rank rank) {
  const Role& role = plan_.role(rank);
  if (role.ahead.empty()) return;
  const RankState& state = ranks_[rank];
  const Seconds start = skew_.start(rank);
  for (std::uint32_t stream = 1; stream < state.streams.size(); ++stream) {
    if (role.lead(stream) > 0 && start > 0) runtime_.delay(state.streams[stream], start);
  }
  const std::uint32_t most = *std::ranges::max_element(role.ahead);
  for (std::uint32_t iteration = 0; iteration < most; ++iteration) {
    const RoleState& role_state = roles_[plan_.role_of[rank]];
    waited_.assign(role_state.stream_used.size() * role_state.events, false);
    for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
      const PlanTask& task = role.tasks[number];
      if (iteration < role.lead(task.stream) && task.steps.contains(iteration)) enqueue(rank, iteration, number);
    }
  }
}

void PlanExecutor::wait_for(Rank rank, std::uint32_t iteration, std::uint32_t number, std::uint32_t before) {
  const Role& role = plan_.role(rank);
  const RoleState& role_state = roles_[plan_.role_of[rank]];
  const RankState& state = ranks_[rank];
  if (role_state.event_of[before] < 0 || !role.tasks[before].steps.contains(iteration)) return;
  const std::uint32_t stream = role.tasks[number].stream;
  const std::uint32_t event = role_state.event(role, before, iteration);
  // A stream that has waited for an event once in this iteration is behind it for good.
  auto waited = waited_[stream * role_state.events + event];
  if (waited) return;
  waited = true;
  runtime_.wait(state.streams[stream], state.events[event]);
  const bool takes = role.lead(role.tasks[before].stream) > 0 && role.lead(stream) == 0;
  if (takes) runtime_.record(state.streams[stream], state.events.back());
}

void PlanExecutor::enqueue(Rank rank, std::uint32_t iteration, std::uint32_t number) {
  const Role& role = plan_.role(rank);
  const RoleState& role_state = roles_[plan_.role_of[rank]];
  const RankState& state = ranks_[rank];
  const PlanTask& task = role.tasks[number];
  const StreamId stream = state.streams[task.stream];
  for (const std::uint32_t before : task.after) wait_for(rank, iteration, number, before);
  const sim::TaskId id{.task = number, .iteration = static_cast<std::int32_t>(iteration)};
  if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
    enqueue_kernels(rank, stream, *block, task.ordinal, id);
  } else if (!enqueue_host_task(rank, stream, task, id)) {
    enqueue_communication(rank, stream, task, id);
  }
  if (role_state.event_of[number] < 0) return;
  runtime_.record(stream, state.events[role_state.event(role, number, iteration)]);
}

bool PlanExecutor::enqueue_host_task(Rank rank, StreamId stream, const PlanTask& task, const sim::TaskId& id) {
  const auto name = [&] { return trace_.intern(plan_.name(plan_.role(rank), {id.task, 0})); };
  if (const auto* host = std::get_if<HostWork>(&task.work)) {
    runtime_.host_work(stream, host->duration, name(), id);
  } else if (const auto* input = std::get_if<InputWork>(&task.work)) {
    const std::vector<double>& rates = host_.samples_per_second;
    const Seconds duration = rates.empty() ? 0 : static_cast<double>(input->samples) / rates[rank];
    runtime_.host_work_alone(stream, duration, name(), id);
  } else if (const auto* copy = std::get_if<HostCopy>(&task.work)) {
    if (copy->back) {
      runtime_.copy_to_host(stream, copy->bytes, name(), id);
    } else {
      runtime_.copy_from_host(stream, copy->bytes, name(), id);
    }
  } else {
    return false;
  }
  return true;
}

/// Kernels with jitter have a factor each.
void PlanExecutor::enqueue_kernels(Rank rank, StreamId stream, const KernelBlock& block, std::uint32_t ordinal,
                                   const sim::TaskId& id) {
  const KernelTable& table = roles_[plan_.role_of[rank]].kernels;
  sim::TaskId part = id;
  if (!skew_.jitters()) {
    const Pace pace{std::max(ranks_[rank].host, runtime_.now()), host_.kernel};
    for (; host_.kernel > 0 && part.part < block.count; ++part.part) {
      issue_kernel(rank, table.names[block.first + part.part], part);
    }
    runtime_.launch(stream, {&table, block.first, block.count, 1 / skew_.speed(rank), pace}, id);
    return;
  }
  for (; part.part < block.count; ++part.part) {
    const std::uint32_t kernel = block.first + part.part;
    if (host_.kernel > 0) runtime_.wait_until(stream, issue_kernel(rank, table.names[kernel], part));
    const double factor =
        skew_.jitter(rank, static_cast<std::uint32_t>(id.iteration), ordinal + part.part) / skew_.speed(rank);
    if (table.demands.empty()) {
      if (table.idle(kernel) > 0) runtime_.delay(stream, table.idle(kernel));
      runtime_.launch(stream, table.durations[kernel] * factor, table.names[kernel], part);
    } else {
      runtime_.launch(stream, {&table, kernel, 1, factor}, part);
    }
  }
}

void PlanExecutor::enqueue_communication(Rank rank, StreamId stream, const PlanTask& task, const sim::TaskId& id) {
  const auto peer = [&](std::int64_t offset) {
    const std::int64_t other = std::int64_t{rank} + offset;
    if (other < 0 || other >= plan_.ranks()) {
      bad_input("communicator", "rank {} has a message for rank {}; ranks are 0 to {}", rank, other, plan_.ranks() - 1);
    }
    return static_cast<Rank>(other);
  };
  if (const auto* send = std::get_if<SendTask>(&task.work)) {
    const std::shared_ptr<const Schedule>& schedule = plan_.messages[send->message].schedule;
    const Pace pace = issue(rank, stream, *schedule, 0, message_names_[send->message], id);
    runtime_.send(stream, peer(send->offset), send->tag, schedule, message_names_[send->message], id, pace);
  } else if (const auto* receive = std::get_if<ReceiveTask>(&task.work)) {
    const std::shared_ptr<const Schedule>& schedule = plan_.messages[receive->message].schedule;
    const Pace pace = issue(rank, stream, *schedule, 1, message_names_[receive->message], id);
    runtime_.receive(stream, peer(receive->offset), receive->tag, schedule, message_names_[receive->message], id, pace);
  } else {
    const std::uint32_t number = std::get<CollectiveTask>(task.work).collective;
    const PlannedCollective& collective = plan_.collectives[number];
    const std::optional<Membership>& member = memberships_[collective.family][rank];
    if (!member.has_value()) {
      bad_input("communicator", "{}: rank {} is in no group of its family", collective.name, rank);
    }
    const std::shared_ptr<const Schedule>& schedule = collective.schedules[member->group];
    const Pace pace = issue(rank, stream, *schedule, member->rank, collective_names_[number], id);
    runtime_.collective(stream, member->communicator, schedule, collective_names_[number], id, pace);
  }
}

Pace PlanExecutor::issue(Rank rank, StreamId stream, const Schedule& schedule, Rank member, std::uint32_t name,
                         const sim::TaskId& id) {
  if (!host_.collective) return {};
  const Issue issue = host_.collective(schedule, member);
  Seconds& host = ranks_[rank].host;
  const Seconds called = std::max(host, runtime_.now());
  const Seconds begin = called + issue.until_start();
  host = begin + issue.behind_the_call;
  if (host_.kernel > 0) trace_issue(rank, called, host, name, id);
  runtime_.wait_until(stream, begin);
  return {begin, issue.task};
}

Seconds PlanExecutor::issue_kernel(Rank rank, std::uint32_t name, const sim::TaskId& id) {
  Seconds& host = ranks_[rank].host;
  const Seconds start = std::max(host, runtime_.now());
  host = start + host_.kernel;
  trace_issue(rank, start, host, name, id);
  return host;
}

/// In a lane behind the streams of the rank.
void PlanExecutor::trace_issue(Rank rank, Seconds start, Seconds end, std::uint32_t name, const sim::TaskId& id) {
  if (!trace_.selected(rank)) return;
  trace_.add({.rank = rank,
              .stream = static_cast<std::uint32_t>(ranks_[rank].streams.size()),
              .name = name,
              .kind = sim::SpanKind::host,
              .start = start,
              .end = end,
              .id = id});
}

void PlanExecutor::end_iteration(Rank rank, std::uint32_t iteration) {
  if (on_end_) note_end(rank, iteration);
  if (iteration + 1 < iterations_) start_iteration(rank, iteration + 1);
}

void PlanExecutor::note_end(Rank rank, std::uint32_t iteration) {
  while (ended_ + endings_.size() <= iteration) endings_.push_back({std::vector<Seconds>(ranks_.size()), 0});
  Ending& ending = endings_[iteration - ended_];
  ending.ends[rank] = runtime_.now();
  if (++ending.ranks < simulated_) return;
  for (rank = 0; orbits_ != nullptr && rank < ranks_.size(); ++rank) {
    ending.ends[rank] = ending.ends[orbits_->representative(rank)];
  }
  // The last rank of an iteration has ended all before it. Others may have begun the next one, which then all do.
  const bool more = on_end_(ending.ends);
  if (!more) iterations_ = std::min(iterations_, iteration + 2);
  endings_.pop_front();
  ++ended_;
}

}  // namespace hcclsim::hccl
