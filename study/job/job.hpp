#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/job/msjob.hpp"
#include "study/job/numbers.hpp"
#include "study/job/servers.hpp"
#include "study/job/simulate_job.hpp"
#include "study/run/spec.hpp"

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
};

/// The servers of a platform, loaded in a child.
[[nodiscard]] std::vector<JobServer> servers_of_platform(const PlatformSpec& platform, const ServerSize& size);

/// Throws Error of kind "msjob" for a wrong file, "unsupported" for a step that cannot be simulated, and what loading
/// the platform and simulating the step throw.
[[nodiscard]] JobResult run_job(const JobSpec& spec);

}  // namespace hcclsim::study
