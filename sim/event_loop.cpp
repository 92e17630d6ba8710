#include "sim/event_loop.hpp"

#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::sim {

EventId EventLoop::at(Seconds date, const QueuedEvent& event) {
  if (!(date >= now_) || !std::isfinite(date)) {
    internal_error("event of rank {} at {} s, but the clock stands at {} s", event.order.rank, date, now_);
  }
  const EventId id = queue_.add(date, event);
  if (running_ && !handling_ && outer_ != nullptr) outer_->arm();  // from a callback of that clock's owner
  return id;
}

void EventLoop::at(Seconds date, EventOrder order, std::function<void()> function) {
  std::uint64_t slot = functions_.size();
  if (free_functions_.empty()) {
    functions_.push_back(std::move(function));
  } else {
    slot = free_functions_.back();
    free_functions_.pop_back();
    functions_[slot] = std::move(function);
  }
  at(date, {this, slot, order});
}

void EventLoop::at_end_of_date(EventHandler& handler, std::uint64_t tag) {
  if (!handling_) internal_error("end of date asked for while no event is handled");
  ending_.push_back({&handler, tag, {}});
}

void EventLoop::run() {
  running_ = true;
  if (outer_ != nullptr) {
    outer_->run();
  } else {
    while (first_date().has_value()) handle_first_date();
  }
  running_ = false;
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Exceptions must not cross the frames of an outer clock: they wait until it has returned.
void EventLoop::handle_first_date() {
  const EventQueue::Bucket bucket = queue_.take_first();
  now_ = queue_.date(bucket);
  handling_ = true;
  try {
    handle(bucket);
  } catch (...) {
    failure_ = std::current_exception();
    ending_.clear();
    ended_.clear();
  }
  handling_ = false;
  queue_.release(bucket);
}

void EventLoop::handle(EventQueue::Bucket bucket) {
  for (std::size_t first = 0; first < queue_.size(bucket) || !ending_.empty();) {
    const std::size_t last = queue_.size(bucket);
    for (const std::uint32_t index : queue_.ordered(bucket, first)) {
      const QueuedEvent event = queue_.event(bucket, index);
      if (event.handler == nullptr) continue;
      ++events_;
      event.handler->on_event(event.tag);
    }
    first = last;
    if (queue_.size(bucket) == last) end_date();
  }
}

void EventLoop::end_date() {
  ended_.swap(ending_);
  for (const QueuedEvent& event : ended_) event.handler->on_event(event.tag);
  ended_.clear();
}

/// Calls the function of a slot.
void EventLoop::on_event(std::uint64_t slot) {
  const std::function<void()> function = std::exchange(functions_[slot], nullptr);
  free_functions_.push_back(slot);
  function();
}

}  // namespace hcclsim::sim
