#include "sim/event_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
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

void EventLoop::watch(EventHandler& handler, std::uint64_t tag, Seconds date) {
  const auto own = std::ranges::find(watches_, &handler, &Watch::handler);
  if (own == watches_.end()) {
    watches_.push_back({date, &handler, tag});
  } else {
    own->date = std::min(own->date, date);
  }
}

/// Those that stand before the date to which the clock goes next.
void EventLoop::call_watches(Seconds next) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {  // NOLINT(modernize-loop-convert): a handler may add watches
    while (watches_[i].date < next) {
      now_ = std::max(now_, std::exchange(watches_[i].date, std::numeric_limits<Seconds>::infinity()));
      watches_[i].handler->on_event(watches_[i].tag);
    }
  }
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
  try {
    call_watches(*queue_.first_date());
  } catch (...) {
    failure_ = std::current_exception();
    return;
  }
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
