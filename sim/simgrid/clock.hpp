#pragma once

#include <simgrid/forward.h>
#include <simgrid/kernel/Timer.hpp>

#include "sim/event_loop.hpp"

/// SimGrid's clock as that of an event loop: one of its timers always stands at the earliest date of the loop.
namespace hcclsim::sim {

/// Each loop begins at date 0: if SimGrid's clock is already past a date, because another loop has run in this process,
/// the date is handled at once, with its own value.
class SimgridClock final : public OuterClock {
 public:
  explicit SimgridClock(EventLoop& loop) : loop_(loop) {}
  ~SimgridClock() override;
  SimgridClock(const SimgridClock&) = delete;
  SimgridClock& operator=(const SimgridClock&) = delete;

  void arm() override;
  void run() override;

 private:
  void disarm();

  EventLoop& loop_;
  simgrid::kernel::timer::Timer* timer_ = nullptr;
  Seconds timer_date_ = 0;
};

}  // namespace hcclsim::sim
