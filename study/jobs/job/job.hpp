#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "study/jobs/job/cluster/servers.hpp"
#include "study/jobs/job/msjob/msjob.hpp"
#include "study/jobs/job/numbers.hpp"
#include "study/jobs/job/simulate_job.hpp"
#include "study/platform/on_platform.hpp"
#include "study/spec/run_spec.hpp"

/// An MSJob on a platform, from its file to what became of it.
namespace hcclsim::study {

/// What the platform's file does not say of its servers.
struct ServerSize {
  std::uint32_t cpus = 192;  ///< cores: those of the hosts of sim/platform/catalog.hpp
  std::optional<Bytes> memory{};
};

struct JobSpec {
  std::string file{};  ///< of the MSJob
  /// What a step is, and the platform; without NPUs and rank table, which the pods decide. With numerics the training
  /// is computed too.
  RunSpec run{};
  std::optional<Seconds> step_time{};  ///< in place of its simulation
  ServerSize servers{};
  JobScenario scenario{};
};

/// What jobs are compared by.
struct JobFigures {
  std::optional<Seconds> time{};    ///< from the creation of the job until it succeeded; none: it did not
  std::optional<double> goodput{};  ///< share of this time in which its workers did steps that counted
  std::optional<Seconds> step{};    ///< mean time of all steps that were done; none: no step was
  std::uint64_t restarts = 0;       ///< of containers by the kubelet, and of pods by the operator
};

struct JobResult {
  MsJob job;
  std::string platform;  ///< name of its file
  std::vector<JobServer> servers;
  JobScenario scenario;
  std::string model;  ///< whose step was simulated; empty: its time was given
  JobOutcome outcome;
  std::optional<JobNumerics> numerics{};
  std::vector<std::string> notes;  ///< sentences: what has no effect, warnings

  [[nodiscard]] bool succeeded() const { return outcome.status.has(JobConditionType::succeeded); }
  /// That the workers ask for.
  [[nodiscard]] Rank npus() const;
  [[nodiscard]] JobFigures figures() const;
};

[[nodiscard]] std::vector<JobServer> servers_of(const sim::Cluster& cluster, const ServerSize& size);

/// The job on a loaded platform, whose steps are simulated in children of this process: any number of jobs may follow
/// each other. Throws Error of kind "msjob" for a wrong file, "unsupported" for a step that cannot be simulated, and
/// what simulating the step throws.
[[nodiscard]] JobResult run_job(const JobSpec& spec, sim::Cluster& cluster);

/// Loads the platform in a child and does there what `work` does with a function that runs the job. Throws what
/// loading, the job and `work` throw.
template <typename Work>
auto on_job(const JobSpec& spec, const Work& work) {
  return on_cluster(spec.run.platform,
                    [&](sim::Cluster& cluster) { return work([&] { return run_job(spec, cluster); }); });
}

}  // namespace hcclsim::study
