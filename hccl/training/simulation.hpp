#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/runtime/fold/folded_cluster.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/private_links.hpp"
#include "hccl/runtime/runtime.hpp"
#include "hccl/runtime/shared_npus.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "sim/cpu_hosts.hpp"
#include "sim/event_loop.hpp"
#include "sim/network/network.hpp"
#include "sim/trace.hpp"

/// Plans on simulated NPUs: one, or those of several jobs at the same time. Jobs have a clock and a network in common,
/// and nothing else: each has its own runtime, so that neither their ranks nor their communicators meet. Faults of one
/// job are there for all of them (FaultPlan::of_jobs).
namespace hcclsim::hccl {

/// A Plan and what it is carried out with, which must outlive the simulation.
struct SimulatedPlan {
  sim::Cluster& cluster;  ///< of several: each its own (Cluster::of_another_job)
  const device::Soc& soc;
  const device::TaskCosts& costs;
  const TrainingOptions& options;
  const Plan& plan;
  sim::Trace& trace;
  IterationEnd on_end;
  std::uint32_t iterations = 1;  ///< at most; `on_end` may end them before
  std::string_view job{};        ///< of several: its name
  sim::FlowLog* flows = nullptr;
  CarriedBytes* carried = nullptr;
};

class Simulation {
 public:
  /// The network is that of the first one's options. Only a Plan that is alone is folded: what another job touches has
  /// no equals, and it may touch anything. For the same reason a link that two jobs use is private to neither. Throws
  /// Error(bad_input, "fold") where folding is required and cannot be.
  explicit Simulation(std::span<const SimulatedPlan> plans);

  /// Throws Error(simulated_failure) if a job cannot finish.
  void run();

  [[nodiscard]] Runtime& runtime(std::size_t job = 0) { return running_[job].runtime; }
  /// Whether a fault keeps a job from ever going on.
  [[nodiscard]] bool any_stands_still() const;
  /// What the Plan that is alone sends over links.
  [[nodiscard]] const PrivateLinks& links() const { return prepared_.front().private_links; }
  /// Null: no rank stands for another.
  [[nodiscard]] const RankOrbits* orbits() const { return prepared_.front().orbits_or_null(); }

 private:
  /// What is known of a Plan before anything runs.
  struct Prepared {
    Prepared(const SimulatedPlan& one, bool alone);
    [[nodiscard]] const RankOrbits* orbits_or_null() const { return orbits.has_value() ? &*orbits : nullptr; }

    std::optional<RankOrbits> orbits;
    FoldedCluster folded;
    std::unique_ptr<sim::CpuHosts> cpus;  // of the folded cluster; null: nothing is copied from them
    PrivateLinks private_links;
  };
  struct Running {
    /// `shared` may be null.
    Running(const SimulatedPlan& one, const Prepared& prepared, sim::EventLoop& loop, sim::Network& network,
            SharedNpus* shared);

    Runtime runtime;
    PlanExecutor executor;
  };

  void share_npus(std::span<const SimulatedPlan> plans);

  std::deque<Prepared> prepared_;
  sim::EventLoop loop_;
  std::unique_ptr<sim::Network> network_;
  std::deque<SharedNpus> npus_;
  std::vector<SharedNpus*> shared_;  // by job; null: its NPUs are not shared
  std::deque<Running> running_;
};

}  // namespace hcclsim::hccl
