#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "hccl/ps/running/exchange.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/progress.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/steps.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"
#include "hccl/ps/wire.hpp"
#include "hccl/runtime/trail.hpp"
#include "sim/event_loop.hpp"

/// Why a job with faults does not go on: from the worker that has waited longest, by way of its servers to the worker
/// for which they wait, and so on, to an NPU that stands still or is slow, or a link that is cut. A wait that is too
/// long is looked at when the clock stands at the date of its time-out.
namespace hcclsim::hccl {

class PsDiagnosis : private sim::EventHandler {
 public:
  /// Of a job that has faults; it watches `progress`.
  PsDiagnosis(const PsOptions& options, PsWire& wire, const PsTimeline& timeline, const PsMembers& members,
              PsProgress& progress, const PsServers& servers, const PsExchange& exchange, const PsSteps& steps);
  PsDiagnosis(const PsDiagnosis&) = delete;
  PsDiagnosis& operator=(const PsDiagnosis&) = delete;
  ~PsDiagnosis() override = default;

  /// Throws Error(simulated_failure), "timeout" or "deadlock", if a fault keeps workers from going on; returns if none
  /// does.
  void report() const;

 private:
  [[nodiscard]] bool waits(std::uint32_t worker) const;
  /// The one that has waited longest.
  [[nodiscard]] std::optional<std::uint32_t> first_waiting() const;
  void on_event(std::uint64_t tag) override;
  [[noreturn]] void report_timeout(std::uint32_t worker) const;
  struct Facts;
  /// From a worker to the cause; where none is found among workers and servers, that of a message.
  [[nodiscard]] Trail trail(std::uint32_t worker, Seconds date) const;
  [[nodiscard]] std::string standing(std::uint32_t worker) const;
  [[nodiscard]] std::string stop_of(std::uint32_t node, Seconds date) const;
  [[nodiscard]] std::string stop_between(std::uint32_t node, std::uint32_t other, Seconds date) const;
  [[nodiscard]] std::string stop_at_servers(std::uint32_t worker, Seconds date) const;
  [[nodiscard]] std::string slowness_of(std::uint32_t worker, Seconds date) const;
  [[nodiscard]] std::string cause_of_messages(Seconds date) const;
  [[nodiscard]] std::optional<std::uint32_t> last_worker(std::uint32_t but) const;

  const PsOptions& options_;
  const sim::FaultPlan& faults_;
  PsWire& wire_;
  const PsTimeline& timeline_;
  const PsMembers& members_;
  PsProgress& progress_;
  const PsServers& servers_;
  const PsExchange& exchange_;
  const PsSteps& steps_;
};

}  // namespace hcclsim::hccl
