#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "study/jobs/job/msjob/msjob.hpp"

/// The status of a job as the operator keeps it. Dates are seconds since the creation of the job.
namespace hcclsim::study {

enum class JobConditionType : std::uint8_t { created, running, restarting, succeeded, failed };
/// "Created", "Running", …
[[nodiscard]] std::string_view name_of(JobConditionType type);

struct JobCondition {
  JobConditionType type = JobConditionType::created;
  bool status = true;
  std::string reason{};  ///< "MSJobCreated"
  std::string message{};
  Seconds last_update = 0;
  Seconds last_transition = 0;
};

struct ReplicaStatus {
  std::uint32_t active = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t failed = 0;

  friend bool operator==(const ReplicaStatus& a, const ReplicaStatus& b) = default;
};

struct JobStatus {
  std::vector<JobCondition> conditions{};                       ///< the last one is the state of the job
  std::array<ReplicaStatus, job_roles> replicas{};              ///< by role
  std::vector<std::pair<Seconds, JobConditionType>> history{};  ///< when which condition was set
  std::optional<Seconds> start{};
  std::optional<Seconds> completion{};
  std::optional<Seconds> last_reconcile{};

  [[nodiscard]] bool has(JobConditionType type) const;  ///< with status True
  [[nodiscard]] bool is_finished() const { return has(JobConditionType::succeeded) || has(JobConditionType::failed); }
  /// The type of the last condition, "" without one: the column State.
  [[nodiscard]] std::string_view state() const;
  [[nodiscard]] ReplicaStatus& of(JobRole role) { return replicas[static_cast<std::size_t>(role)]; }
  [[nodiscard]] const ReplicaStatus& of(JobRole role) const { return replicas[static_cast<std::size_t>(role)]; }

  /// Adds a condition with status True, or renews it, as the library of kubeflow does: Running and Restarting take each
  /// other's place; an end makes Running False; after it nothing changes. Returns whether anything changed.
  bool set(Seconds now, JobConditionType type, const std::string& reason, const std::string& message);
};

/// What happened, for people. The same thing of the same object is one event with a count.
struct JobEvent {
  Seconds first = 0;
  Seconds last = 0;
  std::uint32_t count = 1;
  bool warning = false;
  std::string object;  ///< "msjob/NAME", "pod/NAME", "node/server0"
  std::string reason;  ///< "Scheduled"
  std::string message;
};

/// How often the operator did what its metrics count.
struct JobCounters {
  std::uint32_t created = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t failed = 0;
  std::uint32_t restarted = 0;
  std::uint32_t deleted = 0;
};

}  // namespace hcclsim::study
