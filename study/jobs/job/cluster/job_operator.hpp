#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "study/jobs/job/cluster/job_state.hpp"

/// The MindSpore operator for Kubernetes: it compares a job with its pods and does what is missing.
namespace hcclsim::study {

class JobOperator {
 public:
  /// `remove` deletes a pod, with what its server does then.
  JobOperator(JobState& state, bool gang, std::function<void(Pod&)> remove);

  /// One round. Returns whether anything changed, so that another one is due.
  bool reconcile();

 private:
  void begin();
  [[nodiscard]] bool clean_up();
  [[nodiscard]] std::string limit_exceeded() const;
  [[nodiscard]] bool sync_pod_group();
  [[nodiscard]] bool sync_services();
  [[nodiscard]] bool sync_pods(const ReplicaSpec& spec);
  [[nodiscard]] bool sync_pod(const ReplicaSpec& spec, Pod& pod);
  void create_pod(const ReplicaSpec& spec, std::uint32_t index);
  void warn_of_template(const ReplicaSpec& spec, const std::string& pod);
  [[nodiscard]] bool update_status();
  [[nodiscard]] bool update_status_of(const ReplicaSpec& spec);
  [[nodiscard]] bool worker_0_completed() const;
  [[nodiscard]] std::uint32_t retries() const;
  [[nodiscard]] bool end(JobConditionType type, const std::string& reason, const std::string& message);
  void delete_pod(Pod& pod);

  JobState& state_;
  bool gang_;
  std::function<void(Pod&)> remove_;
  bool restarted_ = false;       ///< a replica, in this round
  std::uint32_t recreated_ = 0;  ///< pods that ended with a retryable exit code and were deleted
  bool cleaned_ = false;         ///< up after the end of the job
};

}  // namespace hcclsim::study
