#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/cluster.hpp"
#include "sim/event_loop.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/network.hpp"

/// Parameters that are not on servers are trained as without them: their gradients are reduced among the workers, in
/// the same simulation and over the same links, and each worker updates its own copy.
namespace hcclsim::hccl {

struct HybridSetup {
  const device::TaskCosts& costs;
  const device::Soc& soc;
  std::shared_ptr<const Schedule> schedule;        ///< an allreduce of all these gradients; null with one worker
  std::vector<Rank> npus;                          ///< of the workers
  std::vector<std::uint32_t> gradients;            ///< production order
  Seconds update = 0;                              ///< of these parameters, on a nominal NPU
  std::shared_ptr<const sim::FaultPlan> faults{};  ///< those of the job
  Seconds exec_timeout = std::numeric_limits<Seconds>::infinity();
};

/// The allreduces of successive steps.
class HybridReduction {
 public:
  /// `setup` must outlive it.
  HybridReduction(const HybridSetup& setup, sim::EventLoop& loop, sim::Network& network, sim::Cluster& cluster);
  HybridReduction(const HybridReduction&) = delete;
  HybridReduction& operator=(const HybridReduction&) = delete;
  ~HybridReduction();

  [[nodiscard]] const HybridSetup& setup() const;
  /// A worker's gradients are ready now; `done` is called when they are reduced on it.
  void arrive(std::uint32_t worker, std::function<void()> done);
  /// When nothing is left to do: throws what Runtime::require_finished() does.
  void require_finished() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hcclsim::hccl
