#include "sim/event_loop.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "sim/simgrid_engine.hpp"

namespace hcclsim::sim {

using simgrid::kernel::timer::Timer;
using simgrid::s4u::Engine;

EventLoop::EventLoop() { engine(); }

EventLoop::~EventLoop() { disarm(); }

EventId EventLoop::at(Seconds date, const QueuedEvent& event) {
  if (!(date >= now_) || !std::isfinite(date)) {
    internal_error("event of rank {} at {} s, but the clock stands at {} s", event.order.rank, date, now_);
  }
  const EventId id = queue_.add(date, event);
  if (running_ && !handling_) arm();  // from a callback of SimGrid
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
  // Without any zone Engine::run crashes.
  if (engine().get_netzone_root() == nullptr) simgrid::s4u::create_empty_zone("empty")->seal();
  running_ = true;
  arm();
  engine().run();
  running_ = false;
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Puts the timer at the earliest date.
void EventLoop::arm() {
  const std::optional<Seconds> date = queue_.first_date();
  if (failure_ != nullptr || !date || (timer_ != nullptr && timer_date_ <= *date)) return;
  disarm();
  timer_date_ = *date;
  // SimGrid's clock is a sum of steps and may be past our date by a rounding error, or by all that an earlier loop
  // has simulated; it refuses a timer in its past.
  timer_ = Timer::set(std::max(*date, Engine::get_clock()), [this] {
    timer_ = nullptr;
    const std::optional<Seconds> first = queue_.first_date();
    if (first && *first <= timer_date_) handle_first_date();  // else what the timer stood for was cancelled
    arm();
  });
}

void EventLoop::disarm() {
  if (timer_ != nullptr) std::exchange(timer_, nullptr)->remove();
}

/// Exceptions must not cross SimGrid's frames: they wait until it has returned.
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
