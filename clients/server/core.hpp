#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "clients/server/hosts/hosts.hpp"
#include "clients/server/memory.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/cluster.hpp"
#include "sim/event_loop.hpp"
#include "study/platform/platform.hpp"

/// What all parts of the simulator work with.
namespace hcclsim::clients {

/// Dates at which something is given up. One that has come in time is cancelled.
class Deadlines final : private sim::EventHandler {
 public:
  using Number = std::uint64_t;

  explicit Deadlines(sim::EventLoop& loop) : loop_(loop) {}

  /// Calls the function at the date. `of_hosts`: what is given up is the wait for other hosts, see hosts_are_due().
  Number at(Seconds date, std::function<void()> function, bool of_hosts = false) {
    const Number number = next_++;
    const sim::EventId event = loop_.at(date, hccl::event_order(0, 0), *this, number);
    pending_[number] = {event, date, of_hosts, std::move(function)};
    return number;
  }
  /// The next date is one at which a host gives up another one, which should have had its chance in real time, too.
  [[nodiscard]] bool hosts_are_due() const {
    const std::optional<Seconds> next = loop_.first_date();
    return next.has_value() && std::ranges::any_of(pending_, [&](const auto& one) {
             return one.second.of_hosts && one.second.date <= *next;
           });
  }
  /// Does nothing if the function was called.
  void cancel(Number number) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;
    loop_.cancel(found->second.event);
    pending_.erase(found);
  }

 private:
  struct Pending {
    sim::EventId event{};
    Seconds date = 0;
    bool of_hosts = false;
    std::function<void()> function{};
  };

  void on_event(std::uint64_t number) override {
    const std::function<void()> function = std::move(pending_[number].function);
    pending_.erase(number);
    function();
  }

  sim::EventLoop& loop_;
  std::map<Number, Pending> pending_;
  Number next_ = 1;
};

struct Core {
  Hosts& hosts;
  hccl::Runtime& runtime;
  sim::EventLoop& loop;
  sim::Trace& trace;
  sim::Cluster& cluster;
  const study::LoadedPlatform& platform;
  const device::TaskCosts& costs;  ///< of the hosts, which pay launches
  hccl::LaunchMode launch;
  DeviceMemory& memory;
  Deadlines& deadlines;
  device::WorkerPool& workers;
  std::optional<Error>& failure;  ///< of the simulated cluster, which stands still from then on
};

}  // namespace hcclsim::clients
