#include "study/jobs/job/msjob/read_msjob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/input_file.hpp"
#include "base/text.hpp"
#include "study/files/yaml.hpp"
#include "study/jobs/job/msjob/pod_shape.hpp"
#include "study/jobs/job/msjob/pod_template.hpp"
#include "study/jobs/job/msjob/yaml_value.hpp"

namespace hcclsim::study {
namespace {

const std::vector<std::string> object_keys{"apiVersion", "kind", "metadata", "spec", "status"};
const std::vector<std::string> job_spec_keys{"enableDynamicWorker", "msReplicaSpecs", "runPolicy", "successPolicy"};
const std::vector<std::string> run_policy_keys{"activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy",
                                               "schedulingPolicy", "ttlSecondsAfterFinished"};
const std::vector<std::string> scheduling_policy_keys{"minAvailable", "minResources", "priorityClass", "queue"};
const std::vector<std::string> replica_keys{"replicas", "restartPolicy", "template"};

constexpr std::string_view api_version = "mindspore.gitee.com/v1";
constexpr std::int64_t most_seconds = INT32_MAX;

std::optional<Seconds> read_seconds(const YamlValue& map, const std::string& key) {
  const std::optional<YamlValue> value = map.find(key);
  if (!value.has_value()) return std::nullopt;
  return static_cast<Seconds>(value->whole_number(0, most_seconds));
}

std::optional<std::uint32_t> read_number(const YamlValue& map, const std::string& key) {
  const std::optional<YamlValue> value = map.find(key);
  if (!value.has_value()) return std::nullopt;
  return static_cast<std::uint32_t>(value->whole_number(0, INT32_MAX));
}

SchedulingPolicy read_scheduling_policy(const YamlValue& value) {
  value.accept_only(scheduling_policy_keys);
  SchedulingPolicy policy;
  policy.min_available = read_number(value, "minAvailable");
  if (const std::optional<YamlValue> resources = value.find("minResources")) {
    policy.min_resources = read_resources(*resources);
  }
  for (const char* const key : {"queue", "priorityClass"}) {
    const std::optional<YamlValue> text = value.find(key);
    if (!text.has_value()) continue;
    static_cast<void>(text->text());
    policy.without_effect.emplace_back(key);
  }
  return policy;
}

RunPolicy read_run_policy(const YamlValue& value) {
  value.accept_only(run_policy_keys);
  RunPolicy policy;
  if (const std::optional<YamlValue> clean = value.find("cleanPodPolicy")) {
    policy.clean_pods = static_cast<CleanPodPolicy>(clean->one_of({"All", "Running", "None"}));
  }
  policy.ttl_after_finished = read_seconds(value, "ttlSecondsAfterFinished");
  policy.active_deadline = read_seconds(value, "activeDeadlineSeconds");
  policy.backoff_limit = read_number(value, "backoffLimit");
  if (const std::optional<YamlValue> scheduling = value.find("schedulingPolicy")) {
    policy.scheduling = read_scheduling_policy(*scheduling);
  }
  return policy;
}

/// Names of roles are normalised regardless of their case.
std::optional<JobRole> role_named(const std::string& name) {
  for (const JobRole role : all_job_roles) {
    if (in_lower_case(name) == in_lower_case(std::string(name_of(role)))) return role;
  }
  return std::nullopt;
}

ReplicaSpec read_replicas(JobRole role, const YamlValue& value) {
  value.accept_only(replica_keys);
  ReplicaSpec spec{.role = role};
  if (const std::optional<YamlValue> replicas = value.find("replicas")) {
    spec.replicas = static_cast<std::uint32_t>(replicas->whole_number(0, INT32_MAX));
    if (spec.replicas > most_job_pods)
      replicas->fail("{} are more than the {} pods that a job may have here", spec.replicas, most_job_pods);
  }
  if (const std::optional<YamlValue> restart = value.find("restartPolicy")) {
    spec.restart = static_cast<RestartPolicy>(restart->one_of({"Always", "OnFailure", "Never", "ExitCode"}));
  }
  spec.pod = read_pod_template(value.require("template"));
  return spec;
}

std::vector<ReplicaSpec> read_roles(const YamlValue& value) {
  std::vector<ReplicaSpec> roles;
  std::uint32_t pods = 0;
  for (const auto& [name, replicas] : value.members()) {
    const std::optional<JobRole> role = role_named(name);
    if (!role.has_value()) {
      replicas.fail("there is no role '{}'; accepted: Scheduler, PS, Worker", printable(name));
    }
    const bool twice =
        std::any_of(roles.begin(), roles.end(), [&](const ReplicaSpec& one) { return one.role == *role; });
    if (twice && *role == JobRole::scheduler) replicas.fail("more than one Scheduler role; accepted: one");
    if (twice) replicas.fail("the role {} stands here twice", name_of(*role));
    roles.push_back(read_replicas(*role, replicas));
    pods += roles.back().replicas;
    if (pods > most_job_pods) replicas.fail("{} pods; accepted: up to {} of a job", pods, most_job_pods);
  }
  if (roles.empty()) value.fail("is empty; give at least one of Scheduler, PS, Worker");
  std::sort(roles.begin(), roles.end(), [](const ReplicaSpec& a, const ReplicaSpec& b) { return a.role < b.role; });
  return roles;
}

/// Pods are named after the job, so its name must leave them room; and a service must begin with a letter.
void check_names(const YamlValue& name, const MsJob& job) {
  require_label_name(name, job.name);
  for (const ReplicaSpec& spec : job.replicas) {
    if (spec.replicas == 0) continue;
    const std::string longest =
        fmt::format("{}-{}-{}", job.name, in_lower_case(std::string(name_of(spec.role))), spec.replicas - 1);
    constexpr std::size_t most = 63;
    if (longest.size() > most) name.fail("the pod's name {} would be longer than {} characters", longest, most);
  }
  const bool letter = job.name.front() >= 'a' && job.name.front() <= 'z';
  if (job.of(JobRole::scheduler) != nullptr && !letter) {
    name.fail("'{}' begins with no letter, as the scheduler's service must", job.name);
  }
}

void read_metadata(const YamlValue& metadata, MsJob& job) {
  require_shape(metadata, "ObjectMeta");
  if (!metadata.find("name").has_value() && metadata.find("generateName").has_value()) {
    metadata.fail("generateName gives another name each time; give name");
  }
  job.name = metadata.require("name").text();
  if (const std::optional<YamlValue> name_space = metadata.find("namespace")) {
    job.name_space = name_space->text();
    require_label_name(*name_space, job.name_space);
  }
}

}  // namespace

MsJob parse_msjob(const std::string& text, const std::string& file) {
  const YamlNode root = parse_yaml(text, file, "msjob");
  const YamlValue object(root, file);
  object.accept_only(object_keys);
  const YamlValue version = object.require("apiVersion");
  if (version.text() != api_version) {
    version.fail("'{}' is not accepted; accepted: {}", printable(version.text()), api_version);
  }
  const YamlValue kind = object.require("kind");
  if (kind.text() != "MSJob") kind.fail("'{}' is not accepted; accepted: MSJob", printable(kind.text()));
  MsJob job;
  job.file = file;
  if (const std::optional<YamlValue> status = object.find("status")) static_cast<void>(status->members());
  const YamlValue metadata = object.require("metadata");
  read_metadata(metadata, job);
  const YamlValue spec = object.require("spec");
  spec.accept_only(job_spec_keys);
  if (const std::optional<YamlValue> policy = spec.find("runPolicy")) job.policy = read_run_policy(*policy);
  if (const std::optional<YamlValue> policy = spec.find("successPolicy")) {
    job.success = static_cast<SuccessPolicy>(policy->one_of({"", "AllWorkers"}));
  }
  if (const std::optional<YamlValue> dynamic = spec.find("enableDynamicWorker")) {
    job.dynamic_worker = dynamic->boolean();
  }
  job.replicas = read_roles(spec.require("msReplicaSpecs"));
  check_names(metadata.require("name"), job);
  return job;
}

MsJob read_msjob(const std::string& path) { return parse_msjob(read_text_file(path, "msjob"), path); }

}  // namespace hcclsim::study
