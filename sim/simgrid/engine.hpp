#pragma once

#include <xbt/log.h>

#include <csignal>
#include <simgrid/s4u/Engine.hpp>

/// The one SimGrid engine of this process, configured so that bytes flow with exact max-min fairness: CM02 without
/// cross-traffic, TCP window or loss of precision. For the files of sim/simgrid/ only.
namespace hcclsim::sim {

/// The engine: the one that exists, or a new one that lives until the process ends. An engine of somebody else is
/// adopted; unless it has a platform already, its network is configured as ours would be.
inline simgrid::s4u::Engine& engine() {
  using simgrid::s4u::Engine;
  static Engine* const configured = [] {
    if (!Engine::has_instance()) xbt_log_control_set("root.thresh:error");  // else changes of options are announced
    struct sigaction interrupt {};
    ::sigaction(SIGINT, nullptr, &interrupt);
    Engine* const found = Engine::get_instance();  // makes one if there is none
    ::sigaction(SIGINT, &interrupt, nullptr);      // which would end the process on Ctrl-C, with status 1
    if (found->get_netzone_root() == nullptr) {
      Engine::set_config("network/model:CM02");
      Engine::set_config("network/crosstraffic:0");  // else 5 % of each flow is charged to the way back
      Engine::set_config("network/TCP-gamma:1e30");  // else rates are at most 4 MiB / (2 latency)
      Engine::set_config("surf/precision:1e-12");
    }
    return found;
  }();
  return *configured;
}

}  // namespace hcclsim::sim
