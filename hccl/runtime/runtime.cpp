#include "hccl/runtime/runtime.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "hccl/runtime/diagnosis.hpp"

namespace hcclsim::hccl {
namespace {

constexpr Seconds not_reached = -1;

/// Puts a value into a free place of a pool, or behind the others.
template <typename Value>
std::uint32_t place_in(std::vector<Value>& pool, std::vector<std::uint32_t>& free, Value value) {
  if (free.empty()) {
    pool.push_back(std::move(value));
    return static_cast<std::uint32_t>(pool.size() - 1);
  }
  const std::uint32_t place = free.back();
  free.pop_back();
  pool[place] = std::move(value);
  return place;
}

}  // namespace

Runtime::Runtime(const Machine& machine) : machine_(machine), streams_of_rank_(machine.cluster.size(), 0) {}

StreamId Runtime::create_stream(Rank rank) {
  if (rank >= machine_.cluster.size()) {
    bad_input("stream", "no NPU {} in a cluster of {}", rank, machine_.cluster.size());
  }
  streams_.push_back({.rank = rank, .number = streams_of_rank_[rank]++, .date = machine_.loop.now(), .tasks = {}});
  return {static_cast<std::uint32_t>(streams_.size() - 1)};
}

EventId Runtime::create_event() {
  events_.emplace_back();
  return {static_cast<std::uint32_t>(events_.size() - 1)};
}

CommunicatorId Runtime::create_communicator(Communicator communicator) {
  Seats seats = Seats::all(communicator);
  return create_communicator(std::move(communicator), std::move(seats));
}

CommunicatorId Runtime::create_communicator(Communicator communicator, Seats seats) {
  check_members(communicator, machine_.cluster.size());
  return add_communicator(std::move(communicator), std::move(seats));
}

CommunicatorId Runtime::add_communicator(Communicator communicator, Seats seats) {
  CommunicatorState state;
  for (Rank place = 0; place < seats.npus.size(); ++place) state.places.emplace_back(seats.npus[place], place);
  std::ranges::sort(state.places);
  state.calls.assign(seats.members.size(), 0);
  state.communicator = std::move(communicator);
  state.seats = std::move(seats);
  communicators_.push_back(std::move(state));
  return {static_cast<std::uint32_t>(communicators_.size() - 1)};
}

void Runtime::launch(StreamId stream, Seconds duration, std::uint32_t name, const sim::TaskId& id) {
  enqueue(stream, {.kind = Kind::kernel, .name = name, .id = id, .duration = duration});
}

void Runtime::launch(StreamId stream, const KernelRun& block, const sim::TaskId& id) {
  enqueue(stream, {.kind = Kind::block, .index = place_in(blocks_, free_blocks_, block), .id = id});
}

void Runtime::host_work(StreamId stream, Seconds duration, std::uint32_t name, const sim::TaskId& id) {
  enqueue(stream, {.kind = Kind::work, .name = name, .id = id, .duration = duration});
}

void Runtime::host_work_alone(StreamId stream, Seconds duration, std::uint32_t name, const sim::TaskId& id) {
  enqueue(stream, {.kind = Kind::work_alone, .name = name, .id = id, .duration = duration});
}

void Runtime::copy_from_host(StreamId stream, Bytes bytes, std::uint32_t name, const sim::TaskId& id) {
  const std::uint32_t index = place_in(copies_, free_copies_, Copy{bytes});
  enqueue(stream, {.kind = Kind::copy, .index = index, .name = name, .id = id});
}

void Runtime::copy_to_host(StreamId stream, Bytes bytes, std::uint32_t name, const sim::TaskId& id) {
  const std::uint32_t index = place_in(copies_, free_copies_, Copy{.bytes = bytes, .to_host = true});
  enqueue(stream, {.kind = Kind::copy, .index = index, .name = name, .id = id});
}

void Runtime::delay(StreamId stream, Seconds duration) { enqueue(stream, {.kind = Kind::delay, .duration = duration}); }

void Runtime::wait_until(StreamId stream, Seconds date) { enqueue(stream, {.kind = Kind::until, .duration = date}); }

void Runtime::record(StreamId stream, EventId event) {
  Event& recorded = events_.at(event.index);
  if (recorded.pending == 0) {
    // Waits to come will ask for the new record.
    const auto needed = std::find(recorded.dates.begin(), recorded.dates.end(), not_reached);
    recorded.forgotten += static_cast<std::uint32_t>(needed - recorded.dates.begin());
    recorded.dates.erase(recorded.dates.begin(), needed);
  }
  recorded.dates.push_back(not_reached);
  enqueue(stream, {.kind = Kind::record, .index = event.index, .generation = recorded.records()});
}

void Runtime::wait(StreamId stream, EventId event) {
  Event& awaited = events_.at(event.index);
  const std::uint32_t generation = awaited.records();
  if (generation > 0) ++awaited.pending;
  enqueue(stream, {.kind = Kind::wait, .index = event.index, .generation = generation});
}

void Runtime::collective(StreamId stream, CommunicatorId communicator, std::shared_ptr<const Schedule> schedule,
                         std::uint32_t name, const sim::TaskId& id, const Pace& pace) {
  const CommunicatorState& state = communicators_.at(communicator.index);
  const Rank npu = streams_.at(stream.index).rank;
  const auto found = std::ranges::lower_bound(state.places, npu, {}, &std::pair<Rank, Rank>::first);
  if (found == state.places.end() || found->first != npu) {
    bad_input("communicator", "NPU {} calls {} on {}, to which it does not belong", npu, machine_.trace.name(name),
              state.communicator.name);
  }
  call(stream, communicator, found->second, std::move(schedule), name, id, pace);
}

void Runtime::call(StreamId stream, CommunicatorId communicator, Rank place, std::shared_ptr<const Schedule> schedule,
                   std::uint32_t name, const sim::TaskId& id, const Pace& pace) {
  CommunicatorState& state = communicators_[communicator.index];
  if (schedule->ranks != state.communicator.ranks.size()) {
    bad_input("collective", "NPU {} calls {} on {}, which has {} ranks, with a schedule for {}",
              streams_[stream.index].rank, machine_.trace.name(name), state.communicator.name,
              state.communicator.ranks.size(), schedule->ranks);
  }
  const std::uint32_t call =
      place_in(calls_, free_calls_, Call{communicator.index, place, state.calls[place]++, std::move(schedule), pace});
  enqueue(stream, {.kind = Kind::collective, .index = call, .name = name, .id = id});
}

CommunicatorId Runtime::channel(Rank source, Rank destination, std::uint32_t tag) {
  const auto size = machine_.cluster.size();
  if (source >= size || destination >= size || source == destination) {
    bad_input("stream", "a message from NPU {} to NPU {} in a cluster of {}", source, destination, size);
  }
  if (machine_.orbits != nullptr) std::tie(source, destination) = machine_.orbits->turned_back(source, destination);
  const auto found = channels_.find({source, destination, tag});
  if (found != channels_.end()) return found->second;
  Communicator ends{fmt::format("messages from {} to {} under tag {}", source, destination, tag),
                    {source, destination}};
  Seats seats = Seats::all(ends);
  if (machine_.orbits != nullptr) {
    seats.npus.back() = machine_.orbits->representative(destination);
    seats.groups = machine_.orbits->size(source);
  }
  const CommunicatorId id = add_communicator(std::move(ends), std::move(seats));
  channels_.emplace(std::tuple(source, destination, tag), id);
  return id;
}

void Runtime::send(StreamId stream, Rank destination, std::uint32_t tag, std::shared_ptr<const Schedule> schedule,
                   std::uint32_t name, const sim::TaskId& id, const Pace& pace) {
  const CommunicatorId way = channel(streams_.at(stream.index).rank, destination, tag);
  call(stream, way, 0, std::move(schedule), name, id, pace);
}

void Runtime::receive(StreamId stream, Rank source, std::uint32_t tag, std::shared_ptr<const Schedule> schedule,
                      std::uint32_t name, const sim::TaskId& id, const Pace& pace) {
  const CommunicatorId way = channel(source, streams_.at(stream.index).rank, tag);
  call(stream, way, 1, std::move(schedule), name, id, pace);
}

void Runtime::host_function(StreamId stream, std::function<void()> function) {
  enqueue(stream, {.kind = Kind::host, .index = place_in(functions_, free_functions_, std::move(function))});
}

void Runtime::hold(StreamId stream, std::function<void()> function) {
  enqueue(stream, {.kind = Kind::hold, .index = place_in(functions_, free_functions_, std::move(function))});
}

void Runtime::release(StreamId stream) {
  wake(stream.index, machine_.loop.now());
  drain();
}

void Runtime::run() {
  machine_.loop.run();
  require_finished();
}

void Runtime::require_finished() const {
  const bool finished = std::ranges::all_of(streams_, [](const Stream& stream) { return stream.tasks.empty(); });
  if (!finished) Diagnosis(*this).report();
}

bool Runtime::stands_still() const { return machine_.faults != nullptr && Diagnosis(*this).stands_still(); }

void Runtime::check_waits() {
  const std::optional<Seconds> overdue = Diagnosis(*this).first_overdue();
  if (overdue.has_value()) machine_.loop.watch(*this, CollectiveRun::overdue_tag, *overdue);
}

void Runtime::enqueue(StreamId id, const Task& task) {
  Stream& stream = streams_.at(id.index);
  const bool idle = stream.tasks.empty();
  stream.tasks.push(task);
  if (!idle) return;
  stream.date = std::max(stream.date, machine_.loop.now());
  ready_.push_back(id.index);
  drain();
}

/// The first task of a blocked stream has ended at `date`.
void Runtime::wake(std::uint32_t index, Seconds date) {
  Stream& stream = streams_[index];
  stream.date = std::max(stream.date, date);
  stream.blocked = false;
  stream.tasks.pop();
  ready_.push_back(index);
}

void Runtime::drain() {
  if (draining_) return;
  draining_ = true;
  while (!ready_.empty()) {
    const std::uint32_t stream = ready_.back();
    ready_.pop_back();
    advance(stream);
  }
  draining_ = false;
}

void Runtime::advance(std::uint32_t index) {
  while (!streams_[index].blocked && !streams_[index].tasks.empty()) {
    const Task task = streams_[index].tasks.front();
    if (perform(index, task)) {
      streams_[index].tasks.pop();
    } else {
      return;
    }
  }
}

bool Runtime::perform(std::uint32_t index, const Task& task) {
  Stream& stream = streams_[index];
  const bool on_device =
      task.kind == Kind::kernel || task.kind == Kind::block || task.kind == Kind::copy || task.kind == Kind::collective;
  if (machine_.faults != nullptr && on_device) {
    const Seconds date = machine_.faults->resumes(stream.rank, stream.date);
    if (std::isinf(date)) return lose(stream);
    stream.date = date;
  }
  switch (task.kind) {
    case Kind::work:
    case Kind::work_alone:
      return work(stream, task);
    case Kind::copy:
      return start_copy(index, task);
    case Kind::kernel:
    case Kind::block:
      return run_kernels(index, task);
    case Kind::delay:
      stream.date += task.duration;
      return true;
    case Kind::until:
      stream.date = std::max(stream.date, task.duration);
      return true;
    case Kind::record: {
      Event& event = events_[task.index];
      event.date(task.generation) = stream.date;
      // Waiters look again; those that wait for another record go back to waiting.
      for (const std::uint32_t waiting : std::exchange(event.waiting, {})) {
        streams_[waiting].blocked = false;
        ready_.push_back(waiting);
      }
      return true;
    }
    case Kind::wait: {
      if (task.generation == 0) return true;
      Event& event = events_[task.index];
      const Seconds date = event.date(task.generation);
      if (date == not_reached) {
        stream.blocked = true;
        event.waiting.push_back(index);
        return false;
      }
      --event.pending;
      stream.date = std::max(stream.date, date);
      return true;
    }
    case Kind::host:
    case Kind::hold:
      stream.blocked = true;
      machine_.loop.at(stream.date, event_order(stream.rank, stream.number),
                       [this, index, function = task.index, holds = task.kind == Kind::hold] {
                         const std::function<void()> call = std::exchange(functions_[function], nullptr);
                         free_functions_.push_back(function);
                         call();
                         if (!holds) release({index});
                       });
      return false;
    case Kind::collective:
      stream.blocked = true;
      start_collective(index, task);
      return false;
  }
  internal_error("unknown kind of task {}", static_cast<int>(task.kind));
}

void Runtime::on_event(std::uint64_t tag) {
  if (tag == CollectiveRun::overdue_tag) {
    check_waits();
    return;
  }
  const auto index = static_cast<std::uint32_t>(tag);
  Stream& stream = streams_[index];
  stream.date = machine_.loop.now();
  if (stream.tasks.front().kind != Kind::copy) {
    end_kernel(index);
    return;
  }
  end_copy(stream, stream.tasks.front(), stream.blocked_since);
  wake(index, stream.date);
  drain();
}

void Runtime::start_collective(std::uint32_t index, const Task& task) {
  const Call& call = calls_[task.index];
  Stream& stream = streams_[index];
  stream.blocked_since = stream.date;
  forget_finished_runs(communicators_[call.communicator]);
  run_of(call, task.name).arrive(call.place, stream.date, index, stream.number, task.id, call.pace);
}

/// The run that a call belongs to; the first call of a sequence number makes it.
CollectiveRun& Runtime::run_of(const Call& call, std::uint32_t name) {
  CommunicatorState& state = communicators_[call.communicator];
  while (state.first + state.runs.size() <= call.sequence) state.runs.emplace_back();
  std::unique_ptr<CollectiveRun>& run = state.runs[call.sequence - state.first];
  if (run == nullptr) {
    const auto done = [this](const CollectiveRun& ended, std::uint32_t stream, Seconds date) {
      end_collective(ended, stream, date);
    };
    sim::EventHandler& overdue = *this;
    run = std::make_unique<CollectiveRun>(machine_, state.communicator, state.seats, call.schedule, name, call.sequence,
                                          done, overdue);
    return *run;
  }
  const Schedule& first = run->schedule();
  const Schedule& own = *call.schedule;
  if (static_cast<const Operation&>(first) != own || first.algorithm != own.algorithm) {
    bad_input("collective",
              "{} #{} on {}: rank {} calls {} of {} {} by {}, another rank called {} of {} {} by {}; all ranks must "
              "call the same",
              machine_.trace.name(name), call.sequence, state.communicator.name, state.seats.members[call.place],
              name_of(own.collective), own.elements, name_of(own.type), own.algorithm, name_of(first.collective),
              first.elements, name_of(first.type), first.algorithm);
  }
  return *run;
}

void Runtime::end_collective(const CollectiveRun& run, std::uint32_t index, Seconds date) {
  const Stream& stream = streams_[index];
  const Task& task = stream.tasks.front();
  if (machine_.trace.selected(stream.rank)) {
    machine_.trace.add({.rank = stream.rank,
                        .stream = stream.number,
                        .name = task.name,
                        .kind = sim::SpanKind::collective,
                        .start = stream.blocked_since,
                        .end = date,
                        .bytes = run.schedule().payload(),
                        .id = task.id,
                        .type = run.schedule().type,
                        .algorithm = machine_.trace.intern(run.schedule().algorithm)});
  }
  if (run.finished()) {
    finished_.push_back(run.stats());
    if (machine_.carried != nullptr) run.add_to(*machine_.carried);
  }
  calls_[task.index] = {};
  free_calls_.push_back(task.index);
  wake(index, date);
  drain();
}

void Runtime::forget_finished_runs(CommunicatorState& state) {
  while (!state.runs.empty() && state.runs.front() != nullptr && state.runs.front()->finished() &&
         !state.runs.front()->busy()) {
    state.runs.pop_front();
    ++state.first;
  }
}

}  // namespace hcclsim::hccl
