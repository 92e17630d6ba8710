#include "study/jobs/job/msjob/msjob.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::study {

std::string_view name_of(JobRole role) {
  constexpr std::array<std::string_view, job_roles> names{"Scheduler", "PS", "Worker"};
  return names.at(static_cast<std::size_t>(role));
}

std::string_view name_of(RestartPolicy policy) {
  constexpr std::array<std::string_view, 4> names{"Always", "OnFailure", "Never", "ExitCode"};
  return names.at(static_cast<std::size_t>(policy));
}

std::string_view name_of(CleanPodPolicy policy) {
  constexpr std::array<std::string_view, 3> names{"All", "Running", "None"};
  return names.at(static_cast<std::size_t>(policy));
}

bool is_npu_resource(std::string_view name) {
  return name == "nvidia.com/gpu" || name.starts_with("huawei.com/Ascend");
}

Rank npus_of(const Resources& resources) {
  std::uint64_t npus = 0;
  for (const auto& [name, amount] : resources) {
    if (is_npu_resource(name)) npus += amount / resource_unit;
  }
  return static_cast<Rank>(npus);
}

const JobContainer& PodTemplate::trainer() const {
  const auto found = std::find_if(containers.begin(), containers.end(),
                                  [](const JobContainer& one) { return one.name == mindspore_container; });
  if (found == containers.end()) internal_error("a pod without a container {}", mindspore_container);
  return *found;
}

const std::string* PodTemplate::variable(std::string_view name) const {
  const std::string* value = nullptr;  // the last one counts
  for (const auto& [variable, text] : trainer().environment) {
    if (variable == name) value = &text;
  }
  return value;
}

std::uint16_t PodTemplate::port() const {
  for (const ContainerPort& port : trainer().ports) {
    if (port.name == job_port_name) return port.number;
  }
  internal_error("a container without a port {}", job_port_name);
}

const ReplicaSpec* MsJob::of(JobRole role) const {
  const auto found =
      std::find_if(replicas.begin(), replicas.end(), [&](const ReplicaSpec& spec) { return spec.role == role; });
  return found == replicas.end() ? nullptr : &*found;
}

std::uint32_t MsJob::replicas_of(JobRole role) const {
  const ReplicaSpec* const spec = of(role);
  return spec == nullptr ? 0 : spec->replicas;
}

std::uint32_t MsJob::pods() const {
  std::uint32_t pods = 0;
  for (const ReplicaSpec& spec : replicas) pods += spec.replicas;
  return pods;
}

}  // namespace hcclsim::study
