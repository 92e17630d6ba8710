#pragma once

#include <functional>
#include <vector>

#include "base/units.hpp"
#include "sim/event_queue.hpp"

namespace hcclsim::study {

/// The dates of a simulated job. Unlike sim::EventLoop it needs no SimGrid: nothing is sent here.
class JobClock final : private sim::EventHandler {
 public:
  [[nodiscard]] Seconds now() const { return now_; }

  /// Calls `function` at `date`, which must not lie before now(), after those that were added for this date before.
  void at(Seconds date, std::function<void()> function);

  /// Handles all events of the earliest date; false if none is left up to `last`.
  bool advance(Seconds last);
  [[nodiscard]] bool empty() const { return !queue_.first_date().has_value(); }

 private:
  void on_event(std::uint64_t tag) override;

  sim::EventQueue queue_;
  std::vector<std::function<void()>> functions_;
  Seconds now_ = 0;
};

}  // namespace hcclsim::study
