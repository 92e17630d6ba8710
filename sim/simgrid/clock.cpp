#include "sim/simgrid/clock.hpp"

#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/simgrid/engine.hpp"

namespace hcclsim::sim {

using simgrid::kernel::timer::Timer;
using simgrid::s4u::Engine;

SimgridClock::~SimgridClock() { disarm(); }

void SimgridClock::run() {
  // Without any zone Engine::run crashes.
  if (engine().get_netzone_root() == nullptr) simgrid::s4u::create_empty_zone("empty")->seal();
  arm();
  engine().run();
}

/// Puts the timer at the earliest date.
void SimgridClock::arm() {
  const std::optional<Seconds> date = loop_.first_date();
  if (!date || (timer_ != nullptr && timer_date_ <= *date)) return;
  disarm();
  timer_date_ = *date;
  // SimGrid's clock is a sum of steps and may be past our date by a rounding error, or by all that an earlier loop
  // has simulated; it refuses a timer in its past.
  timer_ = Timer::set(std::max(*date, Engine::get_clock()), [this] {
    timer_ = nullptr;
    const std::optional<Seconds> first = loop_.first_date();
    if (first && *first <= timer_date_) loop_.handle_first_date();  // else what the timer stood for was cancelled
    arm();
  });
}

void SimgridClock::disarm() {
  if (timer_ != nullptr) std::exchange(timer_, nullptr)->remove();
}

}  // namespace hcclsim::sim
