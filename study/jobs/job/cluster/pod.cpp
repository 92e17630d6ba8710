#include "study/jobs/job/cluster/pod.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

PodPhase phase_of(PodStage stage) {
  switch (stage) {
    case PodStage::unscheduled:
    case PodStage::creating:
      return PodPhase::pending;
    case PodStage::waiting:
    case PodStage::training:
    case PodStage::backing_off:
    case PodStage::unreachable:
      return PodPhase::running;
    case PodStage::succeeded:
      return PodPhase::succeeded;
    case PodStage::failed:
      break;
  }
  return PodPhase::failed;
}

std::string_view ms_role(JobRole role) {
  constexpr std::array<std::string_view, job_roles> names{"MS_SCHED", "MS_PSERVER", "MS_WORKER"};
  return names.at(static_cast<std::size_t>(role));
}

}  // namespace

std::string_view name_of(PodPhase phase) {
  constexpr std::array<std::string_view, 4> names{"Pending", "Running", "Succeeded", "Failed"};
  return names.at(static_cast<std::size_t>(phase));
}

PodPhase Pod::phase() const {
  // A server that is lost says nothing new of its pods.
  if (stage() == PodStage::unreachable) return phase_of(stages[stages.size() - 2].stage);
  return phase_of(stage());
}

std::string pod_name(const MsJob& job, JobRole role, std::uint32_t index) {
  return fmt::format("{}-{}-{}", job.name, in_lower_case(name_of(role)), index);
}

std::map<std::string, std::string> pod_labels(const MsJob& job, JobRole role, std::uint32_t index) {
  std::map<std::string, std::string> labels = job.of(role)->pod.labels;
  labels["group-name"] = "mindspore.gitee.com";
  labels["job-name"] = job.name;
  labels["replica-type"] = in_lower_case(name_of(role));
  labels["replica-index"] = std::to_string(index);
  return labels;
}

std::vector<std::pair<std::string, std::string>> pod_environment(const MsJob& job, JobRole role, std::uint32_t index,
                                                                 const std::string& scheduler_ip) {
  std::vector<std::pair<std::string, std::string>> environment = job.of(role)->pod.trainer().environment;
  if (scheduler_ip.empty()) return environment;
  const std::array<std::pair<std::string, std::string>, 6> injected{
      {{"MS_SCHED_HOST", role == JobRole::scheduler ? "" : scheduler_ip},
       {"MS_SCHED_PORT", std::to_string(job.of(JobRole::scheduler)->pod.port())},
       {"MS_SERVER_NUM", std::to_string(job.replicas_of(JobRole::ps))},
       {"MS_WORKER_NUM", std::to_string(job.replicas_of(JobRole::worker))},
       {"MS_ROLE", std::string(ms_role(role))},
       {"MS_NODE_ID", pod_name(job, role, index)}}};
  for (const auto& variable : injected) {
    std::erase_if(environment, [&](const auto& one) { return one.first == variable.first; });
    environment.push_back(variable);
  }
  return environment;
}

}  // namespace hcclsim::study
