#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

/// MSJob, the custom resource of the MindSpore operator for Kubernetes (apiVersion mindspore.gitee.com/v1), checked and
/// with its defaults.
namespace hcclsim::study {

enum class JobRole : std::uint8_t { scheduler, ps, worker };
inline constexpr std::size_t job_roles = 3;
/// In the order in which the operator takes care of them.
inline constexpr std::array<JobRole, job_roles> all_job_roles{JobRole::scheduler, JobRole::ps, JobRole::worker};
/// "Scheduler", "PS", "Worker".
[[nodiscard]] std::string_view name_of(JobRole role);

enum class RestartPolicy : std::uint8_t { always, on_failure, never, exit_code };
/// "Always", "OnFailure", "Never", "ExitCode".
[[nodiscard]] std::string_view name_of(RestartPolicy policy);

enum class CleanPodPolicy : std::uint8_t { all, running, none };
/// "All", "Running", "None".
[[nodiscard]] std::string_view name_of(CleanPodPolicy policy);

enum class SuccessPolicy : std::uint8_t { worker_0, all_workers };

/// Thousandths of a unit, by name of the resource: {"cpu", 2500} is two and a half cores.
using Resources = std::map<std::string, std::uint64_t>;
inline constexpr std::uint64_t resource_unit = 1000;

/// Names that stand for the NPUs of the simulated servers.
[[nodiscard]] bool is_npu_resource(std::string_view name);
/// NPUs among the resources.
[[nodiscard]] Rank npus_of(const Resources& resources);

struct ContainerPort {
  std::string name{};  ///< empty: none
  std::uint16_t number = 0;
};

enum class ImagePull : std::uint8_t { always, if_not_present, never };

struct JobContainer {
  std::string name;
  std::string image;
  ImagePull pull = ImagePull::if_not_present;
  std::vector<std::pair<std::string, std::string>> environment{};  ///< those with a value in the file, in its order
  std::vector<ContainerPort> ports{};
};

inline constexpr std::string_view mindspore_container = "mindspore";
inline constexpr std::string_view job_port_name = "msjob-port";
inline constexpr std::uint16_t job_port = 2222;

struct PodTemplate {
  std::map<std::string, std::string> labels{};
  std::vector<JobContainer> containers{};
  Resources needed{};  ///< of a pod: its requests, or its limits where it requests nothing
  std::map<std::string, std::string> node_selector{};
  std::string node_name{};                    ///< empty: any
  std::string restart_policy{};               ///< as the template sets it, which the role overrides; empty: it does not
  std::string scheduler_name{};               ///< empty: not set
  std::vector<std::string> without_effect{};  ///< keys of the pod that change nothing here

  /// The container that trains; of a checked job there is one.
  [[nodiscard]] const JobContainer& trainer() const;
  /// Of the trainer's environment; null pointer if it is not set.
  [[nodiscard]] const std::string* variable(std::string_view name) const;
  /// Number of the trainer's port job_port_name.
  [[nodiscard]] std::uint16_t port() const;
};

struct ReplicaSpec {
  JobRole role = JobRole::worker;
  std::uint32_t replicas = 1;
  RestartPolicy restart = RestartPolicy::never;
  PodTemplate pod{};
};

struct SchedulingPolicy {
  std::optional<std::uint32_t> min_available{};  ///< none: all replicas
  Resources min_resources{};
  std::vector<std::string> without_effect{};  ///< keys that change nothing here
};

struct RunPolicy {
  CleanPodPolicy clean_pods = CleanPodPolicy::running;
  std::optional<Seconds> ttl_after_finished{};
  std::optional<Seconds> active_deadline{};
  std::optional<std::uint32_t> backoff_limit{};
  std::optional<SchedulingPolicy> scheduling{};
};

struct MsJob {
  std::string file;
  std::string name;
  std::string name_space = "default";
  RunPolicy policy{};
  SuccessPolicy success = SuccessPolicy::worker_0;
  bool dynamic_worker = false;
  std::vector<ReplicaSpec> replicas{};  ///< at most one of each role, in the order of all_job_roles

  /// Null pointer if the job has no such role.
  [[nodiscard]] const ReplicaSpec* of(JobRole role) const;
  /// 0 if the job has no such role.
  [[nodiscard]] std::uint32_t replicas_of(JobRole role) const;
  [[nodiscard]] std::uint32_t pods() const;
};

}  // namespace hcclsim::study
