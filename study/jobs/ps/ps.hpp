#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/ps/replay.hpp"
#include "hccl/ps/simulation.hpp"
#include "study/jobs/ps/spec.hpp"
#include "study/platform/on_platform.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/numerics/divergence.hpp"
#include "study/spec/run_spec.hpp"

/// Training with parameter servers, from its specs to its result.
namespace hcclsim::study {

/// The run and the servers on a loaded platform: everything that the simulation is given.
struct PsExperiment {
  /// `run`: its NPUs are the workers; none are all that servers leave. Throws Error(bad_input) for what is wrong with
  /// the specs, and "unsupported" for what servers do not do.
  PsExperiment(RunSpec run, const PsSpec& spec, sim::Cluster& cluster);

  RunSpec run;
  Experiment experiment;
  hccl::PsOptions options;
  std::optional<hccl::HybridSetup> hybrid;
  sim::NetworkKind network = sim::NetworkKind::fluid;
  std::vector<std::uint32_t> others;  ///< gradients of parameters that are on no server
  Bytes bytes_on_servers = 0;
  Bytes other_bytes = 0;
};

struct PsNumerics {
  std::string computed_shape;
  std::string data;
  std::vector<hccl::ReplayedStep> steps{};
  std::vector<double> allreduce_losses{};  ///< of data parallelism, by step; empty: it was not computed
  std::optional<Divergence> diverged{};    ///< at the end
};

/// A step over the workers that did it; a step that was lost and repeated counts with each repetition.
struct WorkersStep {
  std::uint32_t step = 0;  ///< from 0 on
  double loss = 0;         ///< mean, as the accuracy is
  double accuracy = 0;
  Seconds end = 0;  ///< of the last worker
};

/// In the order of their numbers.
[[nodiscard]] std::vector<WorkersStep> steps_of_workers(std::span<const hccl::ReplayedStep> steps);

struct PsResult {
  std::string model;
  std::string title;
  std::string platform;
  std::string npu;
  std::string network;
  std::uint32_t batch = 0;
  std::uint32_t workers = 0;
  std::uint32_t servers = 0;
  bool asynchronous = false;
  std::optional<std::uint32_t> staleness;
  std::size_t parameters = 0;  ///< on servers
  std::size_t others = 0;      ///< by allreduce
  Bytes bytes_on_servers = 0;
  Bytes other_bytes = 0;
  hccl::PsOutcome outcome;
  std::optional<Seconds> allreduce_step;  ///< of the same workers without servers
  std::optional<PsNumerics> numerics;
  std::vector<std::string> notes;

  [[nodiscard]] Seconds step_time() const { return outcome.step_time(); }
  /// Samples of all steps over the time from the first step's begin to the last one's end.
  [[nodiscard]] double samples_per_second() const;
};

/// Simulates the loaded job, and what it is compared with. To be called once per process, as SimGrid holds one
/// simulation.
[[nodiscard]] PsResult simulate_ps(PsExperiment& experiment, const PsSpec& spec, bool compared);

/// Loads the platform in a child and does there what `work` does with the PsExperiment. Throws what loading and `work`
/// throw.
template <typename Work>
auto on_ps_experiment(const RunSpec& run, const PsSpec& spec, const Work& work) {
  return on_cluster(run.platform, run.simulation.network, [&](sim::Cluster& cluster) {
    PsExperiment experiment(run, spec, cluster);
    return work(experiment);
  });
}

/// Step time of synchronous training of `run` with the workers and servers of `spec` on a loaded platform. To be called
/// once per process. Throws Error as the command would report it.
[[nodiscard]] Seconds ps_step_time(const RunSpec& run, const PsSpec& spec, sim::Cluster& cluster);
/// The same in a child that loads the platform: any number may follow each other.
[[nodiscard]] Seconds ps_step_time(const RunSpec& run, const PsSpec& spec);

}  // namespace hcclsim::study
