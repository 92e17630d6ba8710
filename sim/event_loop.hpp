#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/event_queue.hpp"

/// The simulated clock. Everything that happens at a date — a kernel that ends, a transfer whose alpha is over, a flow
/// that is drained — is an event here. Events of one date fire in the order (rank, stream, insertion), whatever the
/// order in which they were found, so that a simulation is the same on every machine and on both networks. Events that
/// are added for the date being handled still fire at this date, after the others and again in that order.
///
/// The queue keeps all events of one date in one bucket, because thousands of NPUs in lockstep have thousands of events
/// at the same date.
namespace hcclsim::sim {

/// A clock that somebody else keeps, and that a loop follows.
class OuterClock {
 public:
  virtual ~OuterClock() = default;
  /// Sees to it that the loop's handle_first_date() is called when first_date() is reached.
  virtual void arm() = 0;
  /// Runs until the loop has no event and nothing else is under way.
  virtual void run() = 0;
};

class EventLoop final : private EventHandler {
 public:
  EventLoop() = default;
  ~EventLoop() override = default;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// The date of the event that is being handled; 0 before the first.
  [[nodiscard]] Seconds now() const { return now_; }

  /// Calls handler.on_event(tag) at `date`, which must not lie before now() and must be finite, else Error(internal).
  EventId at(Seconds date, EventOrder order, EventHandler& handler, std::uint64_t tag) {
    return at(date, {&handler, tag, order});
  }
  /// The same for a function; for rare events.
  void at(Seconds date, EventOrder order, std::function<void()> function);

  /// Forgets an event that has not fired. A date that has no other event is never reached.
  void cancel(EventId event) { queue_.cancel(event); }

  /// Calls handler.on_event(tag) once after the events of the date being handled, for work that is done once per date.
  /// The handler may add events for the same date; they are handled too. To be called only while events are handled.
  void at_end_of_date(EventHandler& handler, std::uint64_t tag);

  /// Calls handler.on_event(tag), once, before the first event behind `date` is handled, with the clock at `date`;
  /// never if there is no such event. Of several dates that a handler has asked for, the first one counts.
  void watch(EventHandler& handler, std::uint64_t tag, Seconds date);

  /// Runs until no event is left and no transfer is under way. An exception thrown by a handler ends the run and is
  /// thrown from here. May be called again after new events were added.
  void run();

  /// From now on the loop follows another clock; to be called while it does not run.
  void follow(std::unique_ptr<OuterClock> clock) { outer_ = std::move(clock); }

  /// The earliest date with an event; nothing if there is none, or if a handler has failed. For outer clocks.
  [[nodiscard]] std::optional<Seconds> first_date() const {
    return failure_ == nullptr ? queue_.first_date() : std::nullopt;
  }
  /// Handles the events of the earliest date. Never throws: what a handler throws is kept for run(). For outer clocks.
  void handle_first_date();

  /// Events handled since the start.
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  EventId at(Seconds date, const QueuedEvent& event);
  void handle(EventQueue::Bucket bucket);
  void call_watches(Seconds next);
  void end_date();
  void on_event(std::uint64_t slot) override;

  EventQueue queue_;
  Seconds now_ = 0;
  std::uint64_t events_ = 0;
  bool running_ = false;
  bool handling_ = false;
  std::exception_ptr failure_;
  std::unique_ptr<OuterClock> outer_;
  struct Watch {
    Seconds date = 0;
    EventHandler* handler = nullptr;
    std::uint64_t tag = 0;
  };
  std::vector<Watch> watches_;       // one of each handler that has asked for it
  std::vector<QueuedEvent> ending_;  // to be called at the end of the date
  std::vector<QueuedEvent> ended_;   // being called
  std::vector<std::function<void()>> functions_;
  std::vector<std::uint64_t> free_functions_;
};

}  // namespace hcclsim::sim
