#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clients/server/communication/call_groups.hpp"
#include "clients/server/communication/communication.hpp"
#include "clients/server/communicators/beginnings.hpp"
#include "clients/server/communicators/communicators.hpp"
#include "clients/server/communicators/peer_memory.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices/accesses.hpp"
#include "clients/server/devices/copies.hpp"
#include "clients/server/devices/device_waits.hpp"
#include "clients/server/devices/devices.hpp"
#include "clients/server/devices/events.hpp"
#include "clients/server/devices/host_functions.hpp"
#include "clients/server/devices/streams.hpp"
#include "clients/server/handles.hpp"
#include "clients/server/hosts/hosts.hpp"
#include "clients/server/meetings.hpp"
#include "clients/server/processes.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/cpu_hosts.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/network.hpp"

/// The simulated cluster under a program: it answers the program's threads, and lets simulated time go on when none of
/// them can.
namespace hcclsim::clients {

struct SimulatorOptions {
  hccl::LaunchMode launch = hccl::LaunchMode::op;
  Seconds connect_timeout = 120;
  std::shared_ptr<const sim::FaultPlan> faults{};
  std::vector<Rank> traced{};              ///< NPUs whose spans are kept
  std::optional<double> wall_timeout_s{};  ///< of real time, after which the program is given up
  bool poison = false;                     ///< memory holds a pattern at first, and its uses are watched
};

class Simulator {
 public:
  Simulator(study::LoadedPlatform& platform, Hosts& hosts, const SimulatorOptions& options);

  /// Until all processes have ended. Throws Error(simulated_failure): "client" for a process that crashes or ends with
  /// an error, "deadlock" for a program that stands still, "wall-timeout" for one that has not ended in time,
  /// "mismatch" for ranks that call different things, and what the simulated cluster throws.
  void run();

  [[nodiscard]] const sim::Trace& trace() const { return trace_; }

 private:
  std::optional<Result> handle(ThreadId id, const Question& question);
  /// The same for what ACL asks for.
  std::optional<Result> handle_of_device(ThreadId id, const Question& question);
  /// Handles the next date; false if there is none.
  bool advance();
  void fail(const Error& error);
  /// Where everybody stands.
  [[nodiscard]] std::string standing() const;
  [[noreturn]] void report_process(std::uint32_t number) const;

  Hosts& hosts_;
  std::optional<double> wall_timeout_s_;
  device::TaskCosts on_device_;  // of the device: the hosts pay launches
  sim::EventLoop loop_;
  sim::Trace trace_;
  sim::CpuHosts cpus_;
  std::shared_ptr<const sim::FaultPlan> faults_;
  std::unique_ptr<sim::Network> network_;
  hccl::Runtime runtime_;
  DeviceMemory memory_;
  Deadlines deadlines_;
  device::WorkerPool workers_;
  Accesses accesses_;
  std::optional<Error> failure_;
  Core core_;
  Meetings meetings_;
  Handles device_handles_;
  DeviceWaits device_waits_;
  Streams streams_;
  Events events_;
  HostFunctions host_functions_;
  Devices devices_;
  Copies copies_;
  Handles communicator_handles_;
  Communicators communicators_;
  PeerMemory peer_memory_;
  Beginnings beginnings_;
  Communication communication_;
  CallGroups call_groups_;
  Processes processes_;
};

}  // namespace hcclsim::clients
