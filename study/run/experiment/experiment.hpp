#pragma once

#include <vector>

#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "study/run/experiment/loaded_run.hpp"
#include "study/run/experiment/sharding/sharded_networks.hpp"

namespace hcclsim::study {

/// A step that a spec names on a loaded platform, ready to be simulated: loaded (loaded_run.hpp), lowered from its
/// network to the programs of its stages (lower.hpp), segmented into what travels together (segment.hpp), with what its
/// Plan needs besides. Everything that simulates a training step begins with it. The platform comes apart, since many
/// runs can start from it, each in a child of the process.
struct Experiment : LoadedRun {
  /// Throws what is wrong with the spec, the rank table or the program. The cluster must outlive the object. `known`:
  /// what experiments before it have cut; null: nothing.
  Experiment(const RunSpec& spec, sim::Cluster& cluster, ShardedNetworks* known = nullptr);

  /// Simulates a step; once per process with the network `simgrid`.
  [[nodiscard]] hccl::TimedStep simulate(const hccl::TrainingStep& of) {
    return simulate_training(cluster, soc, costs, of);
  }

  /// The Plan of a step, which is not simulated.
  [[nodiscard]] hccl::Plan plan() { return plan_training(cluster, soc, training); }

  /// That of the printed rank.
  [[nodiscard]] device::HbmAccount& hbm() {
    return hbm_of_stages[training.simulation.rank / training.step.stage_ranks()];
  }
  [[nodiscard]] const device::HbmAccount& hbm() const {
    return hbm_of_stages[training.simulation.rank / training.step.stage_ranks()];
  }

  std::vector<device::HbmAccount> hbm_of_stages;  ///< of an NPU of each stage
  std::vector<hccl::StartUp> start_up;            ///< of each stage: what is sent once before the first step

 private:
  /// What the Plan needs besides its stages: memory, start-up, hosts.
  void complete();
  /// Of an NPU of each stage.
  void check_memory();
  void add_start_up();
  /// Reports on the reuse of communication subgraphs, if there is any, and counts the buffers of its communicators.
  /// Throws Error(simulated_failure, "streams") if a device has too few streams.
  void share_communication();
  void add_host();
  /// Memory of hooks, whose buckets are the segments of the gradients.
  void add_compression();
};

}  // namespace hcclsim::study
