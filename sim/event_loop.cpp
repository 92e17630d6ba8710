#include "sim/event_loop.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/event_queue.hpp"
#include "sim/simgrid_engine.hpp"

namespace hcclsim::sim {

using simgrid::kernel::timer::Timer;
using simgrid::s4u::Engine;

class EventLoop::Impl final : private EventHandler {
 public:
  Impl() { engine(); }
  ~Impl() override { disarm(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  EventId at(Seconds date, const QueuedEvent& event) {
    if (!(date >= now_) || !std::isfinite(date)) {
      internal_error("event of rank {} at {} s, but the clock stands at {} s", event.order.rank, date, now_);
    }
    const EventId id = queue_.add(date, event);
    if (running_ && !handling_) arm();  // from a callback of SimGrid
    return id;
  }

  void at(Seconds date, EventOrder order, std::function<void()> function) {
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

  void cancel(EventId event) { queue_.cancel(event); }

  void at_end_of_date(EventHandler& handler, std::uint64_t tag) {
    if (!handling_) internal_error("end of date asked for while no event is handled");
    ending_.push_back({&handler, tag, {}});
  }

  void run() {
    // Without any zone Engine::run crashes.
    if (engine().get_netzone_root() == nullptr) simgrid::s4u::create_empty_zone("empty")->seal();
    running_ = true;
    arm();
    engine().run();
    running_ = false;
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  [[nodiscard]] Seconds now() const { return now_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  /// Puts the timer at the earliest date.
  void arm() {
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

  void disarm() {
    if (timer_ != nullptr) std::exchange(timer_, nullptr)->remove();
  }

  /// Exceptions must not cross SimGrid's frames: they wait until it has returned.
  void handle_first_date() {
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

  void handle(EventQueue::Bucket bucket) {
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

  void end_date() {
    ended_.swap(ending_);
    for (const QueuedEvent& event : ended_) event.handler->on_event(event.tag);
    ended_.clear();
  }

  /// Calls the function of a slot.
  void on_event(std::uint64_t slot) override {
    const std::function<void()> function = std::exchange(functions_[slot], nullptr);
    free_functions_.push_back(slot);
    function();
  }

  EventQueue queue_;
  Seconds now_ = 0;
  std::uint64_t events_ = 0;
  bool running_ = false;
  bool handling_ = false;
  std::exception_ptr failure_;
  Timer* timer_ = nullptr;
  Seconds timer_date_ = 0;
  std::vector<QueuedEvent> ending_;  // to be called at the end of the date
  std::vector<QueuedEvent> ended_;   // being called
  std::vector<std::function<void()>> functions_;
  std::vector<std::uint64_t> free_functions_;
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() = default;

Seconds EventLoop::now() const { return impl_->now(); }

EventId EventLoop::at(Seconds date, EventOrder order, EventHandler& handler, std::uint64_t tag) {
  return impl_->at(date, {&handler, tag, order});
}

void EventLoop::at(Seconds date, EventOrder order, std::function<void()> function) {
  impl_->at(date, order, std::move(function));
}

void EventLoop::cancel(EventId event) { impl_->cancel(event); }
void EventLoop::at_end_of_date(EventHandler& handler, std::uint64_t tag) { impl_->at_end_of_date(handler, tag); }
void EventLoop::run() { impl_->run(); }
std::uint64_t EventLoop::events() const { return impl_->events(); }

}  // namespace hcclsim::sim
