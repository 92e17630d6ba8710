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
  const StepSpec& step;
  const SimulationOptions& options;
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
  /// The network is that of the first one's options. Of several Plans each is folded by itself, but for what uses links
  /// that another one uses: such a link is like no other, and private to none of them. Throws
  /// Error(bad_input, "fold") where folding is required and cannot be.
  explicit Simulation(std::span<const SimulatedPlan> plans);

  /// Throws Error(simulated_failure) if a job cannot finish.
  void run();

  [[nodiscard]] Runtime& runtime(std::size_t job = 0) { return running_[job].runtime; }
  /// Whether a fault keeps a job from ever going on.
  [[nodiscard]] bool any_stands_still() const;
  /// What a Plan sends over links.
  [[nodiscard]] const PrivateLinks& links(std::size_t job = 0) const { return prepared_[job].private_links; }
  /// Null: no rank stands for another.
  [[nodiscard]] const RankOrbits* orbits(std::size_t job = 0) const {
    return orbits_[job].has_value() ? &*orbits_[job] : nullptr;
  }

 private:
  /// What is known of a Plan before anything runs.
  struct Prepared {
    /// `orbits` of its ranks and `fold` of the links of all Plans; each may be null.
    Prepared(const SimulatedPlan& one, const RankOrbits* orbits, const sim::LinkFold* fold);

    FoldedCluster folded;
    std::unique_ptr<sim::CpuHosts> cpus;  // of the folded cluster; null: nothing is copied from them
    PrivateLinks private_links;
  };
  struct Running {
    /// `shared` may be null.
    Running(const SimulatedPlan& one, const RankOrbits* orbits, const Prepared& prepared, sim::EventLoop& loop,
            sim::Network& network, SharedNpus* shared);

    Runtime runtime;
    PlanExecutor executor;
  };

  void share_npus(std::span<const SimulatedPlan> plans);

  std::vector<std::optional<RankOrbits>> orbits_;  // by job, as all below
  std::deque<Prepared> prepared_;
  sim::EventLoop loop_;
  std::unique_ptr<sim::Network> network_;
  std::deque<SharedNpus> npus_;
  std::vector<SharedNpus*> shared_;  // null: its NPUs are not shared
  std::deque<Running> running_;
};

}  // namespace hcclsim::hccl
