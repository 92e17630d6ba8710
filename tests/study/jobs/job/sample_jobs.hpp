#pragma once

#include <fmt/format.h>
#include <algorithm>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "study/jobs/job/msjob/read_msjob.hpp"
#include "study/jobs/job/simulate_job.hpp"

/// Jobs and servers for tests. With sample_scenario() processes register at 42 s: 30 s for the image, 2 s for the
/// container, 10 s for the process.
namespace hcclsim::study::test {

struct RoleText {
  std::string name;
  std::uint32_t replicas = 1;
  std::string restart = "Never";
  std::string needs{};        ///< "huawei.com/Ascend910: 2"
  std::string environment{};  ///< "MS_ENABLE_RECOVERY=1"
  std::string pod{};          ///< a line of the pod's spec
};

/// `spec`: lines of spec, indented by two blanks.
inline std::string msjob_text(const std::vector<RoleText>& roles, const std::string& spec = "") {
  std::string text =
      "apiVersion: mindspore.gitee.com/v1\nkind: MSJob\nmetadata:\n  name: job\nspec:\n" + spec + "  msReplicaSpecs:\n";
  for (const RoleText& role : roles) {
    text += fmt::format("    {}:\n      replicas: {}\n      restartPolicy: {}\n      template:\n        spec:\n",
                        role.name, role.replicas, role.restart);
    if (!role.pod.empty()) text += "          " + role.pod + "\n";
    text += "          containers:\n            - name: mindspore\n              image: mindspore:2.0\n";
    if (!role.needs.empty()) {
      text += fmt::format("              resources:\n                limits:\n                  {}\n", role.needs);
    }
    if (const std::size_t equals = role.environment.find('='); equals != std::string::npos) {
      text += fmt::format("              env:\n                - name: {}\n                  value: '{}'\n",
                          role.environment.substr(0, equals), role.environment.substr(equals + 1));
    }
  }
  return text;
}

inline MsJob sample_job(const std::vector<RoleText>& roles, const std::string& spec = "") {
  return parse_msjob(msjob_text(roles, spec), "job.yaml");
}

inline std::vector<JobServer> sample_servers(std::uint32_t count, Rank npus_each) {
  std::vector<JobServer> servers(count);
  for (std::uint32_t server = 0; server < count; ++server) {
    servers[server] = {.name = fmt::format("server{}", server), .npu_resource = "huawei.com/Ascend910", .cpus = 16};
    for (Rank npu = 0; npu < npus_each; ++npu) servers[server].npus.push_back(server * npus_each + npu);
  }
  return servers;
}

/// 100 steps; sample_step gives each 0.1 s, 10 s in all.
inline JobScenario sample_scenario(const std::vector<std::string>& failures = {}) {
  JobScenario scenario{.plan = {.steps = 100}};
  for (const std::string& failure : failures) scenario.failures.push_back(parse_job_failure(failure));
  return scenario;
}

inline StepTimes sample_step(const TrainingHosts& /*hosts*/) { return {.first = 0.1}; }

inline const Pod& pod_of(const JobOutcome& outcome, const std::string& name) {
  const auto pod = std::find_if(outcome.pods.rbegin(), outcome.pods.rend(),
                                [&](const Pod& one) { return one.name == "job-" + name; });
  if (pod == outcome.pods.rend()) internal_error("no pod {}", name);
  return *pod;
}

/// The first event of a reason; null pointer without one.
inline const JobEvent* event_of(const JobOutcome& outcome, const std::string& reason) {
  for (const JobEvent& event : outcome.events) {
    if (event.reason == reason) return &event;
  }
  return nullptr;
}

}  // namespace hcclsim::study::test
