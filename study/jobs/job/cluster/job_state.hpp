#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "study/jobs/job/cluster/job_clock.hpp"
#include "study/jobs/job/cluster/job_status.hpp"
#include "study/jobs/job/cluster/pod.hpp"
#include "study/jobs/job/msjob/msjob.hpp"

/// What the API server of the simulated Kubernetes holds. The operator, the nodes and the processes in the containers
/// read and change it, each its own part.
namespace hcclsim::study {

struct JobService {
  std::string name;  ///< that of its pod
  std::uint32_t index = 0;
  std::string cluster_ip;
  std::uint16_t port = 0;
  Seconds created = 0;
  std::optional<Seconds> deleted{};
};

/// Of gang scheduling.
struct PodGroup {
  enum class Phase : std::uint8_t { pending, inqueue, running };

  Phase phase = Phase::pending;
  std::uint32_t min_member = 0;
  Resources min_resources{};
  std::string why{};  ///< it is pending
  Seconds created = 0;
  std::optional<Seconds> deleted{};
};
/// "Pending", "Inqueue", "Running".
[[nodiscard]] std::string_view name_of(PodGroup::Phase phase);

class JobState {
 public:
  explicit JobState(const MsJob& of) : job(of) {}

  [[nodiscard]] Seconds now() const { return clock.now(); }
  [[nodiscard]] const PodTemplate& template_of(const Pod& pod) const { return job.of(pod.role)->pod; }
  /// Of those that are there; null pointer without one.
  [[nodiscard]] Pod* live_pod(const std::string& name);
  [[nodiscard]] const JobService* live_service(std::uint32_t scheduler) const;

  void tell(const std::string& object, const std::string& reason, const std::string& message) {
    add_event(false, object, reason, message);
  }
  void warn(const std::string& object, const std::string& reason, const std::string& message) {
    add_event(true, object, reason, message);
  }
  [[nodiscard]] std::string job_object() const { return "msjob/" + job.name; }
  [[nodiscard]] static std::string object_of(const Pod& pod) { return "pod/" + pod.name; }

  const MsJob& job;
  JobClock clock;
  JobStatus status;
  JobCounters counters;
  bool deleted = false;              ///< the job itself, when its time to live is over
  std::deque<Pod> pods;              ///< all that there have been, in the order of their creation
  std::vector<JobService> services;  ///< the same
  std::optional<PodGroup> pod_group;
  std::vector<JobEvent> events;

 private:
  void add_event(bool warning, const std::string& object, const std::string& reason, const std::string& message);

  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> event_at_;
};

}  // namespace hcclsim::study
