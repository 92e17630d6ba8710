#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "hccl/runtime/collective/collective_run.hpp"

// What members of a collective that does not go on wait for.
namespace hcclsim::hccl {

std::string CollectiveRun::waiting_for(Rank place) const {
  const Member& member = members_[place];
  for (std::uint32_t number = 0; number < schedule_->queues; ++number) {
    const Queue& queue = queues_[index_of(place, number)];
    const Task* task = queue.active ? queue.walk.task() : nullptr;
    if (task == nullptr) continue;
    const std::string what = is_wait(task->kind) ? fmt::format("waits for notify slot {}", queue.walk.notify())
                                                 : fmt::format("is in a {}", name_of(task->kind));
    return fmt::format("{} #{}: queue {} {} in stage '{}' ({} of {} ranks have arrived)", name(), sequence_, number,
                       what, schedule_->stage(member.stage).name, arrived_, schedule_->ranks);
  }
  return fmt::format("{} #{}: {} of {} ranks have arrived", name(), sequence_, arrived_, schedule_->ranks);
}

std::optional<Seconds> CollectiveRun::arrival(Rank place) const {
  const Member& member = members_[place];
  return member.arrived ? std::optional(member.arrival) : std::nullopt;
}

std::vector<Waiting> CollectiveRun::waiting(Rank place) const {
  std::vector<Waiting> all;
  for (std::uint32_t number = 0; number < schedule_->queues; ++number) {
    const Queue& queue = queues_[index_of(place, number)];
    if (!queue.active || (queue.walk.task() == nullptr && !std::isinf(queue.date))) continue;
    Waiting waiting = waiting_at(place, queue);
    waiting.queue = number;
    std::vector<Rank> posters;
    if (waiting.what == Waiting::For::notify && !waiting.sent) posters = posters_of(place, waiting.notify);
    for (const Rank poster : posters) all.push_back(for_notify_of(poster, place, waiting));
    if (posters.empty()) all.push_back(std::move(waiting));
  }
  return all;
}

Waiting CollectiveRun::for_notify_of(Rank poster, Rank place, Waiting waiting) const {
  waiting.peer = communicator_.ranks[poster];
  if (waiting.peer != npu_of(place)) waiting.route = &machine_.cluster.route(waiting.peer, npu_of(place));
  return waiting;
}

Waiting CollectiveRun::waiting_at(Rank place, const Queue& queue) const {
  const Member& member = members_[place];
  const Task* const task = queue.walk.task();
  Waiting waiting;
  waiting.since = queue.date;
  waiting.step = fmt::format("stage '{}'", schedule_->stage(member.stage).name);
  if (task == nullptr || std::isinf(queue.date)) {
    waiting.what = Waiting::For::npu;
    return waiting;
  }
  waiting.step += fmt::format(", round {}", queue.walk.place().round);
  if (is_transfer(task->kind)) {
    waiting.what = Waiting::For::transfer;
    waiting.peer = communicator_.ranks[queue.walk.peer(*schedule_, member.rank)];
    waiting.bytes = queue.walk.bytes(*schedule_, member.rank);
    waiting.since = queue.task_start;
    waiting.route = queue.route;
    return waiting;
  }
  if (!is_wait(task->kind)) {
    waiting.what = Waiting::For::work;
    waiting.bytes = queue.bytes;
    waiting.since = queue.task_start;
    return waiting;
  }
  waiting.notify = queue.walk.notify();
  const Slot& slot = slots_[std::size_t{place} * schedule_->notifies + waiting.notify];
  waiting.sent = slot.date != unset;
  if (!waiting.sent) return waiting;
  waiting.posted = slot.posted;
  waiting.arrives = slot.date;
  return for_notify_of(slot.poster, place, std::move(waiting));
}

/// The ranks of the communicator whose tasks to come set a notify slot of a member next. Posts to one slot come one
/// after the other, so that the one of the earliest round is meant; several ranks where rounds do not tell.
std::vector<Rank> CollectiveRun::posters_of(Rank place, std::uint32_t slot) const {
  using Step = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // stage, loop, round
  std::optional<Step> first;
  std::vector<Rank> posters;
  const auto look = [&](QueueWalk walk, std::uint32_t stage, Rank by) {
    for (; walk.task() != nullptr; walk.next()) {
      const Step step(stage, walk.loop(), walk.place().round);
      if (first.has_value() && step > *first) return;
      const bool to_place = is_post(walk.task()->kind) && seats_.place_of[walk.peer(*schedule_, by)] == place;
      if (!to_place || walk.notify() != slot) continue;
      if (step != first) posters.clear();
      first = step;
      if (posters.empty() || posters.back() != by) posters.push_back(by);
      return;
    }
  };
  const std::uint32_t last = members_[place].stage;
  for (Rank other = 0; other < members_.size(); ++other) {
    const Member& member = members_[other];
    for (std::uint32_t number = 0; member.arrived && number < schedule_->queues; ++number) {
      const Queue& queue = queues_[index_of(other, number)];
      if (queue.active) look(queue.walk, member.stage, member.rank);
    }
    for (std::uint32_t stage = member.arrived ? member.stage + 1 : 0; stage < stages_ && stage <= last; ++stage) {
      for (std::uint32_t number = 0; number < schedule_->queues; ++number) {
        QueueWalk walk;
        if (walk.enter(*schedule_, stage, member.rank, number)) look(walk, stage, member.rank);
      }
    }
  }
  return posters;
}

}  // namespace hcclsim::hccl
