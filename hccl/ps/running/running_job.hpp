#pragma once

#include <memory>
#include <optional>

#include "hccl/ps/hybrid.hpp"
#include "hccl/ps/running/diagnosis.hpp"
#include "hccl/ps/running/exchange.hpp"
#include "hccl/ps/running/failover.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/progress.hpp"
#include "hccl/ps/running/rows.hpp"
#include "hccl/ps/running/scaling.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/steps.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"
#include "hccl/ps/wire.hpp"
#include "sim/event_loop.hpp"
#include "sim/network/network.hpp"

/// A job with parameter servers while it is simulated. Each of its parts knows only those that are declared before it;
/// what it tells later ones are calls that it is given.
namespace hcclsim::hccl {

class RunningJob {
 public:
  /// `hybrid`: null: all parameters are on servers. All arguments must outlive the job.
  RunningJob(sim::Cluster& cluster, const models::Program& program, const PsOptions& options, sim::EventLoop& loop,
             sim::Network& network, const HybridSetup* hybrid);
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;
  ~RunningJob() = default;

  /// Adds the first events; the loop then runs until nothing is left to do.
  void start();
  /// After the loop has ended. Throws Error(simulated_failure) if the job stands still: "timeout" if a fault has kept a
  /// worker waiting for PsOptions::exec_timeout, else "deadlock".
  [[nodiscard]] PsOutcome finish();

 private:
  void handle(const PsRequest& request);
  [[noreturn]] void report_standstill() const;
  void add_figures();
  void add_links(std::uint32_t node, PsNodeFigures& figures);

  const sim::Cluster& cluster_;
  const PsOptions& options_;
  PsOutcome outcome_;
  PsWire wire_;
  PsTimeline timeline_;
  PsMembers members_;
  PsProgress progress_;
  BatchRows batches_;
  PsServers servers_;
  PsExchange exchange_;
  PsRows rows_;
  std::unique_ptr<HybridReduction> hybrid_;
  PsSteps steps_;
  PsScaling scaling_;
  PsFailover failover_;
  std::optional<PsDiagnosis> diagnosis_{};  // of a job with faults
};

}  // namespace hcclsim::hccl
