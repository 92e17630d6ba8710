#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/units.hpp"

/// The simulated clock. Everything that happens at a date — a kernel that ends, a transfer whose alpha is over, a flow
/// that is drained — is an event here. Events of one date fire in the order (rank, stream, insertion), whatever the
/// order in which they were found, so that a simulation is the same on every machine and on both networks.
///
/// SimGrid keeps the clock: one of its timers always stands at our earliest date. Our own queue keeps all events of
/// one date in one bucket, because thousands of NPUs in lockstep have thousands of events at the same date.
namespace hcclsim::sim {

/// Where an event belongs, for ordering among events of one date.
struct EventOrder {
  Rank rank = 0;
  std::uint32_t stream = 0;
};

/// Receives events without an allocation for each; `tag` is what was passed when the event was made.
class EventHandler {
 public:
  virtual void on_event(std::uint64_t tag) = 0;

 protected:
  ~EventHandler() = default;
};

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// The date of the event that is being handled; 0 before the first.
  [[nodiscard]] Seconds now() const;

  /// Calls handler.on_event(tag) at `date`, which must not lie before now() and must be finite.
  void at(Seconds date, EventOrder order, EventHandler& handler, std::uint64_t tag);
  /// The same for a function; for what is rare.
  void at(Seconds date, EventOrder order, std::function<void()> function);

  /// Runs until no event is left and no transfer is under way. May be called again after new events were added.
  void run();

  /// Events handled since the start.
  [[nodiscard]] std::uint64_t events() const;

  class Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }  // for the networks of this folder

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace hcclsim::sim
