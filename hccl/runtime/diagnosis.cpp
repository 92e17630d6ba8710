#include "hccl/runtime/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// What matters most comes first: what does not go on by itself, then what has lasted longest.
bool matters_more(const Waiting& one, const Waiting& other) {
  const auto kind = [](const Waiting& waiting) {
    return waiting.what == Waiting::For::npu ? 0 : waiting.what != Waiting::For::notify ? 1 : 2;
  };
  if (kind(one) != kind(other)) return kind(one) < kind(other);
  return one.since < other.since;
}

}  // namespace

const CollectiveRun& Diagnosis::run_under_way(const Task& task) const {
  const Call& call = calls_[task.index];
  const CommunicatorState& state = communicators_[call.communicator];
  return *state.runs[call.sequence - state.first];
}

std::vector<Diagnosis::Obstacle> Diagnosis::obstacles(std::uint32_t stream) const {
  const Task& task = streams_[stream].tasks.front();
  if (task.kind != Kind::collective || streams_[stream].lost || !streams_[stream].blocked) return {{stream}};
  std::vector<Waiting> waits = run_under_way(task).waiting(calls_[task.index].place);
  std::ranges::stable_sort(waits, matters_more);
  std::vector<Obstacle> found;
  for (Waiting& waiting : waits) found.push_back({stream, std::move(waiting)});
  if (found.empty()) found.push_back({stream});
  return found;
}

const sim::Route* Diagnosis::way_of_copy(const Stream& stream) const {
  if (machine_.cpus == nullptr) return nullptr;
  const Copy& copy = copies_[stream.tasks.front().index];
  return copy.to_host ? machine_.cpus->way_from(stream.rank) : machine_.cpus->way_to(stream.rank);
}

std::optional<Diagnosis::Obstacle> Diagnosis::first_wait() const {
  std::optional<Obstacle> first;
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
    if (streams_[stream].tasks.empty() || streams_[stream].lost || !streams_[stream].blocked) continue;
    const Task& task = streams_[stream].tasks.front();
    if (task.kind != Kind::collective) continue;
    for (const Waiting& waiting : run_under_way(task).waiting(calls_[task.index].place)) {
      const bool earlier = !first.has_value() || waiting.since < first->waiting->since;
      if (waiting.what == Waiting::For::notify && earlier) first = {stream, waiting};
    }
  }
  return first;
}

bool Diagnosis::stands_still() const {
  const Seconds now = machine_.loop.now();
  const auto never_passes = [&](const sim::Route& route) {
    return std::isinf(machine_.faults->passes(route, now)) || std::isinf(machine_.faults->resumes(route.source, now)) ||
           std::isinf(machine_.faults->resumes(route.destination, now));
  };
  const auto never_ends = [&](const Waiting& waiting) {
    if (waiting.what == Waiting::For::npu) return true;
    if (waiting.what == Waiting::For::transfer) return waiting.route != nullptr && never_passes(*waiting.route);
    return waiting.what == Waiting::For::notify && waiting.sent && std::isinf(waiting.arrives);
  };
  return std::ranges::any_of(streams_, [&](const Stream& stream) {
    if (stream.tasks.empty()) return false;
    if (stream.lost) return true;
    if (!stream.blocked) return false;
    const Task& task = stream.tasks.front();
    if (task.kind == Kind::copy) return never_passes(*way_of_copy(stream));
    return task.kind == Kind::collective &&
           std::ranges::any_of(run_under_way(task).waiting(calls_[task.index].place), never_ends);
  });
}

std::optional<std::uint32_t> Diagnosis::stream_to_call(Rank npu, const Task& task) const {
  const Call& wanted = calls_[task.index];
  std::optional<std::uint32_t> unfinished;
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
    if (streams_[stream].rank != npu || streams_[stream].tasks.empty()) continue;
    for (const Task& one : streams_[stream].tasks) {
      if (one.kind != Kind::collective) continue;
      const Call& call = calls_[one.index];
      if (call.communicator == wanted.communicator && call.sequence == wanted.sequence) return stream;
    }
    if (!unfinished.has_value() || streams_[stream].lost) unfinished = stream;
  }
  return unfinished;
}

std::optional<std::uint32_t> Diagnosis::stream_to_record(Rank npu, const Task& wait) const {
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
    if (streams_[stream].rank != npu) continue;
    for (const Task& task : streams_[stream].tasks) {
      const bool records = task.kind == Kind::record && task.index == wait.index && task.generation == wait.generation;
      if (records) return stream;
    }
  }
  return std::nullopt;
}

std::string Diagnosis::cause_of_transfer(const Waiting& transfer, Seconds date) const {
  std::string cause;
  if (machine_.faults == nullptr) return cause;
  sim::visit_ways(*transfer.route, transfer.bytes, [&](const sim::Route& way, double) {
    if (cause.empty() || machine_.faults->stops(way, date)) cause = machine_.faults->cause(way, date);
  });
  if (!cause.empty()) return cause;
  const std::string before = machine_.faults->cause_before(*transfer.route, date);
  return before.empty() ? before : "the transfer is not done yet; " + before;
}

std::string Diagnosis::cause_of_lateness(Rank npu, Seconds date) const {
  if (machine_.faults == nullptr) return {};
  const std::string cause = machine_.faults->cause(npu, date);
  return cause.empty() ? machine_.faults->cause_before(npu, date) : cause;
}

std::string Diagnosis::late(Rank npu, const std::string& what, Seconds comes, Seconds date) const {
  const std::string cause = cause_of_lateness(npu, date);
  return fmt::format("rank {} is late: {} at {:.9g} s only{}", npu, what, comes, cause.empty() ? "" : "; " + cause);
}

Origin<Diagnosis::Obstacle> Diagnosis::Facts::origin(const Obstacle& obstacle) const {
  const Stream& stream = of.streams_[obstacle.stream];
  const Task& task = stream.tasks.front();
  if (stream.lost || (obstacle.waiting.has_value() && obstacle.waiting->what == Waiting::For::npu)) {
    return {.cause = of.machine_.faults->cause(stream.rank, sim::FaultPlan::never)};
  }
  if (obstacle.waiting.has_value() && obstacle.waiting->since > date) {
    return {.cause = of.late(stream.rank, "it goes on", obstacle.waiting->since, date)};
  }
  if (obstacle.waiting.has_value() && obstacle.waiting->what == Waiting::For::transfer) {
    const std::string cause = of.cause_of_transfer(*obstacle.waiting, date);
    return {.cause = cause.empty() ? "the transfer is not done yet" : cause};
  }
  if (obstacle.waiting.has_value() && obstacle.waiting->what == Waiting::For::work) {
    return {.cause = fmt::format("rank {} is not done with it yet", stream.rank)};
  }
  if (obstacle.waiting.has_value()) return of.origin_of_notify(obstacle, date);
  if (task.kind == Kind::wait) return of.next(of.stream_to_record(stream.rank, task));
  if (task.kind == Kind::collective) return {.cause = of.cause_of_lateness(stream.rank, date)};
  if (task.kind == Kind::copy && stream.blocked && of.way_of_copy(stream) != nullptr) {
    const std::string cause = of.machine_.faults->cause(*of.way_of_copy(stream), date);
    return {.cause = cause.empty() ? "the copy is not done yet" : cause};
  }
  const bool is_kernel = task.kind == Kind::kernel || task.kind == Kind::block;  // on shared NPUs
  if (is_kernel && stream.date > date) {
    return {.cause = of.late(stream.rank, "what comes before begins", stream.date, date)};
  }
  const std::string cause = of.cause_of_lateness(stream.rank, date);
  return {.cause = fmt::format("rank {} is busy with what comes before {} {:.9g} s{}", stream.rank,
                               stream.date > date ? "until" : "since", stream.date, cause.empty() ? "" : ": " + cause)};
}

Origin<Diagnosis::Obstacle> Diagnosis::next(std::optional<std::uint32_t> stream) const {
  if (!stream.has_value()) return {};
  return {.next = obstacles(*stream)};
}

Origin<Diagnosis::Obstacle> Diagnosis::origin_of_notify(const Obstacle& obstacle, Seconds date) const {
  const Waiting& waiting = *obstacle.waiting;
  if (waiting.peer == Waiting::nobody) return {};
  const Task& task = streams_[obstacle.stream].tasks.front();
  const CollectiveRun& run = run_under_way(task);
  const CommunicatorState& state = communicators_[calls_[task.index].communicator];
  const auto found = std::ranges::lower_bound(state.places, waiting.peer, {}, &std::pair<Rank, Rank>::first);
  const bool is_there = found != state.places.end() && found->first == waiting.peer;
  const std::optional<Seconds> arrival = is_there ? run.arrival(found->second) : std::nullopt;
  if (arrival.has_value() && *arrival > date) {
    return {.cause = late(waiting.peer, "it comes to " + machine_.trace.name(task.name), *arrival, date)};
  }
  if (waiting.sent && waiting.posted > date) {
    return {.cause = late(waiting.peer, "it sends the notify", waiting.posted, date)};
  }
  if (waiting.sent) {  // it is under way, which takes no time but for faults
    const std::string cause = machine_.faults->cause(*waiting.route, date);
    return {.cause = cause.empty() ? machine_.faults->cause(*waiting.route, waiting.posted) : cause};
  }
  if (arrival.has_value()) return next(run.caller(found->second));
  const std::optional<std::uint32_t> calling = stream_to_call(waiting.peer, task);
  if (calling.has_value()) return next(calling);
  return {.cause = cause_of_lateness(waiting.peer, date)};
}

std::string Diagnosis::Facts::line(const Obstacle& obstacle) const {
  const Stream& stream = of.streams_[obstacle.stream];
  const Task& task = stream.tasks.front();
  std::string text = fmt::format("\n  rank {}, stream {}", stream.rank, stream.number);
  if (task.id.iteration >= 0) text += fmt::format(", iteration {}", task.id.iteration + 1);
  text += ": ";
  if (stream.lost) return text + "stands still for good";
  if (task.kind == Kind::wait) return text + "waits for another stream of the rank";
  if (task.kind == Kind::copy && stream.blocked) {
    const Copy& copy = of.copies_[task.index];
    return text + fmt::format("copies {} bytes {} its CPU since {:.9g} s", copy.bytes, copy.to_host ? "to" : "from",
                              stream.blocked_since);
  }
  if (task.kind != Kind::collective) return text + "has not come to what is waited for";
  const Call& call = of.calls_[task.index];
  text += fmt::format("{} #{} on {}", of.machine_.trace.name(task.name), call.sequence,
                      of.communicators_[call.communicator].communicator.name);
  if (!obstacle.waiting.has_value()) return text;
  const Waiting& waiting = *obstacle.waiting;
  text += fmt::format(", {}, queue {}: ", waiting.step, waiting.queue);
  if (waiting.what == Waiting::For::npu) return text + "stands still for good";
  if (waiting.since > date) return text + fmt::format("goes on at {:.9g} s", waiting.since);
  switch (waiting.what) {
    case Waiting::For::transfer:
      return text + fmt::format("moves {} bytes between rank {} and rank {} since {:.9g} s", waiting.bytes,
                                waiting.route->source, waiting.route->destination, waiting.since);
    case Waiting::For::work:
      return text + fmt::format("copies or reduces {} bytes since {:.9g} s", waiting.bytes, waiting.since);
    case Waiting::For::npu:
    case Waiting::For::notify:
      break;
  }
  const std::string whom = waiting.peer == Waiting::nobody ? "that nobody sets"
                           : waiting.peer == stream.rank   ? "of another queue of the rank"
                                                           : fmt::format("of rank {}", waiting.peer);
  return text + fmt::format("waits for notify {} {} since {:.9g} s", waiting.notify, whom, waiting.since);
}

std::tuple<std::uint32_t, std::uint32_t, Rank> Diagnosis::Facts::key(const Obstacle& obstacle) {
  constexpr std::uint32_t no_queue = ~0U;
  const bool waits = obstacle.waiting.has_value();
  return {obstacle.stream, waits ? obstacle.waiting->queue : no_queue,
          waits ? obstacle.waiting->peer : Waiting::nobody};
}

std::optional<Seconds> Diagnosis::first_overdue() const {
  const std::optional<Obstacle> first = first_wait();
  if (!first.has_value()) return std::nullopt;
  const Seconds overdue = first->waiting->since + machine_.exec_timeout;
  if (overdue <= machine_.loop.now()) report_timeout(*first);
  return overdue;
}

void Diagnosis::report_timeout(const Obstacle& first) const {
  const Waiting& waiting = *first.waiting;
  const Stream& stream = streams_[first.stream];
  const Seconds date = waiting.since + machine_.exec_timeout;
  const std::string whom =
      waiting.peer == Waiting::nobody || waiting.peer == stream.rank ? "" : fmt::format(" for rank {}", waiting.peer);
  simulated_failure(
      "timeout",
      "{}{}rank {} waits{} since {:.9g} s, and HCCL_EXEC_TIMEOUT lets it wait {:.6g} s: the job ends at {:.9g} s{}",
      machine_.job, machine_.job.empty() ? "" : ": ", stream.rank, whom, waiting.since, machine_.exec_timeout, date,
      text_of(trail(first, date)));
}

void Diagnosis::report_faults() const {
  if (machine_.faults == nullptr) return;
  const std::optional<Obstacle> first = first_wait();
  if (first.has_value() && !std::isinf(machine_.exec_timeout)) {
    if (!trail(*first, first->waiting->since + machine_.exec_timeout).cause.empty()) report_timeout(*first);
    return;
  }
  std::optional<Obstacle> from = first;
  for (std::uint32_t stream = 0; stream < streams_.size() && !from.has_value(); ++stream) {
    if (!streams_[stream].tasks.empty()) from = obstacles(stream).front();
  }
  const Trail found = trail(*from, sim::FaultPlan::never);
  if (found.cause.empty()) return;
  simulated_failure("deadlock", "{}{}the simulation stopped before all streams had finished{}{}", machine_.job,
                    machine_.job.empty() ? "" : ": ",
                    first.has_value() ? ": nothing ends a wait without HCCL_EXEC_TIMEOUT" : "", text_of(found));
}

void Diagnosis::report() const {
  report_faults();
  constexpr std::size_t most_lines = 8;
  std::string message = fmt::format("{}{}the simulation stopped before all streams had finished:", machine_.job,
                                    machine_.job.empty() ? "" : ": ");
  std::size_t unfinished = 0;
  for (const Stream& stream : streams_) {
    if (stream.tasks.empty() || ++unfinished > most_lines) continue;
    const Task& task = stream.tasks.front();
    std::string what;
    if (task.kind == Kind::wait) {
      what = fmt::format("waits for record {} of event {}, which was not reached", task.generation, task.index);
    } else if (task.kind == Kind::collective) {
      const Call& call = calls_[task.index];
      const CommunicatorState& state = communicators_[call.communicator];
      what = fmt::format("{} on {}", state.runs[call.sequence - state.first]->waiting_for(call.place),
                         state.communicator.name);
    } else {
      what = "has not begun its next task";
    }
    message += fmt::format("\n  rank {}, stream {}: {} ({} more of the stream behind)", stream.rank, stream.number,
                           what, stream.tasks.size() - 1);
  }
  if (unfinished > most_lines) message += fmt::format("\n  and {} more streams", unfinished - most_lines);
  throw Error(ErrorCode::simulated_failure, "deadlock", message);
}

}  // namespace hcclsim::hccl
