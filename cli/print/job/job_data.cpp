#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/print/job/job_report.hpp"
#include "cli/print/job/kubectl_words.hpp"

namespace hcclsim::cli {
namespace {

using study::JobOutcome;
using study::JobResult;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json();
}

/// The sub-resource status, in the words of Kubernetes.
Json status_object(const JobResult& result) {
  const study::JobStatus& status = result.outcome.status;
  Json conditions = Json::array();
  for (const study::JobCondition& condition : status.conditions) {
    conditions.push_back(Json::object({{"lastTransitionTime", kubernetes_time(condition.last_transition)},
                                       {"lastUpdateTime", kubernetes_time(condition.last_update)},
                                       {"message", condition.message},
                                       {"reason", condition.reason},
                                       {"status", condition.status ? "True" : "False"},
                                       {"type", name_of(condition.type)}}));
  }
  Json replicas = Json::object();
  for (const study::ReplicaSpec& spec : result.job.replicas) {
    const study::ReplicaStatus& counts = status.of(spec.role);
    replicas.append(
        std::string(name_of(spec.role)),
        Json::object({{"active", counts.active}, {"failed", counts.failed}, {"succeeded", counts.succeeded}}));
  }
  Json object = Json::object();
  if (status.completion.has_value()) object.append("completionTime", kubernetes_time(*status.completion));
  object.append("conditions", std::move(conditions));
  if (status.last_reconcile.has_value()) object.append("lastReconcileTime", kubernetes_time(*status.last_reconcile));
  object.append("replicaStatuses", std::move(replicas));
  if (status.start.has_value()) object.append("startTime", kubernetes_time(*status.start));
  return object;
}

Json stages_of(const study::Pod& pod) {
  constexpr std::array<std::string_view, 8> names{"unscheduled", "creating",    "waiting",   "training",
                                                  "backing_off", "unreachable", "succeeded", "failed"};
  Json stages = Json::array();
  for (const study::Pod::Change& change : pod.stages) {
    stages.push_back(
        Json::object({{"at_s", change.date}, {"stage", names.at(static_cast<std::size_t>(change.stage))}}));
  }
  return stages;
}

Json pod_object(const JobResult& result, const study::Pod& pod) {
  Json environment = Json::object();
  for (const auto& [name, value] : pod.environment) environment[name] = value;
  Json ports = Json::array();
  for (const study::ContainerPort& port : result.job.of(pod.role)->pod.trainer().ports) {
    ports.push_back(Json::object({{"name", port.name}, {"containerPort", port.number}}));
  }
  const bool placed = pod.seat.has_value();
  return Json::object({{"name", pod.name},
                       {"role", name_of(pod.role)},
                       {"index", pod.index},
                       {"phase", name_of(pod.phase())},
                       {"status", kubectl_status(pod)},
                       {"why", pod.why},
                       {"restarts", pod.restarts()},
                       {"exit_code", or_null(pod.exit_code)},
                       {"node", placed ? Json(result.servers[pod.seat->server].name) : Json()},
                       {"npus", placed ? Json(pod.seat->npus) : Json::array()},
                       {"ip", pod.ip},
                       {"deleted_s", or_null(pod.deleted)},
                       {"stages", stages_of(pod)},
                       {"labels", Json(pod.labels)},
                       {"env", std::move(environment)},
                       {"ports", std::move(ports)}});
}

Json service_list(const JobOutcome& outcome) {
  Json services = Json::array();
  for (const study::JobService& service : outcome.services) {
    services.push_back(Json::object({{"name", service.name},
                                     {"type", "ClusterIP"},
                                     {"cluster_ip", service.cluster_ip},
                                     {"port", service.port},
                                     {"deleted_s", or_null(service.deleted)}}));
  }
  return services;
}

Json event_list(const JobOutcome& outcome) {
  Json events = Json::array();
  for (const study::JobEvent& event : outcome.events) {
    events.push_back(Json::object({{"first_s", event.first},
                                   {"last_s", event.last},
                                   {"count", event.count},
                                   {"type", event.warning ? "Warning" : "Normal"},
                                   {"reason", event.reason},
                                   {"object", event.object},
                                   {"message", event.message}}));
  }
  return events;
}

Json step_list(const std::vector<study::JobStep>& steps) {
  Json list = Json::array();
  for (const study::JobStep& step : steps) {
    list.push_back(
        Json::object({{"step", step.step}, {"end_s", step.end}, {"loss", step.loss}, {"accuracy", step.accuracy}}));
  }
  return list;
}

Json run_list(const JobResult& result) {
  Json runs = Json::array();
  for (std::size_t number = 0; number < result.outcome.runs.size(); ++number) {
    const study::TrainingRun& run = result.outcome.runs[number];
    const bool compressed = run.step_times.change_at != study::StepTimes::never;
    Json object = Json::object({{"worker", run.worker},
                                {"start_s", run.start},
                                {"end_s", or_null(run.end)},
                                {"first_step", run.first_step},
                                {"steps", run.steps},
                                {"step_time_s", run.step_times.first},
                                {"compressed_from_step", compressed ? Json(run.step_times.change_at) : Json()},
                                {"compressed_step_time_s", compressed ? Json(run.step_times.then) : Json()},
                                {"npus", run.hosts.npus},
                                {"ended", run.why_ended}});
    if (result.numerics.has_value()) object.append("numbers", step_list(result.numerics->runs[number]));
    runs.push_back(std::move(object));
  }
  return runs;
}

Json condition_history(const JobOutcome& outcome) {
  Json history = Json::array();
  for (const auto& [date, type] : outcome.status.history) {
    history.push_back(Json::object({{"at_s", date}, {"type", name_of(type)}}));
  }
  return history;
}

// --- YAML of JSON: maps and lists indented, texts in quotes

void put_yaml(std::string& text, const Json& value, std::size_t indent);

void put_yaml_members(std::string& text, const Json& object, std::size_t indent, bool first_is_placed) {
  for (const Json::Member& member : object.items()) {
    if (!first_is_placed) text.append(indent, ' ');
    first_is_placed = false;
    text += member.key + ':';
    put_yaml(text, member.value, indent + 2);
  }
}

/// What stands behind "key:", with the end of its line.
void put_yaml(std::string& text, const Json& value, std::size_t indent) {
  if (value.is_object() && !value.empty()) {
    text += '\n';
    put_yaml_members(text, value, indent, false);
  } else if (value.is_array() && !value.empty()) {
    text += '\n';
    for (const Json& item : value) {
      text.append(indent - 2, ' ');
      text += "- ";
      put_yaml_members(text, item, indent, true);
    }
  } else {
    text += ' ' + value.dump() + '\n';
  }
}

}  // namespace

std::string job_json(const JobResult& result) {
  const JobOutcome& outcome = result.outcome;
  constexpr std::array<std::string_view, 3> endings{"finished", "stuck", "out_of_time"};
  Json pods = Json::array();
  for (const study::Pod& pod : outcome.pods) pods.push_back(pod_object(result, pod));
  Json group;
  if (outcome.pod_group.has_value()) {
    group = Json::object({{"phase", name_of(outcome.pod_group->phase)},
                          {"min_member", outcome.pod_group->min_member},
                          {"why", outcome.pod_group->why},
                          {"deleted_s", or_null(outcome.pod_group->deleted)}});
  }
  const study::JobCounters& counters = outcome.counters;
  const study::JobFigures figures = result.figures();
  Json report = Json::object({{"format_version", 1},
                              {"job", result.job.name},
                              {"namespace", result.job.name_space},
                              {"platform", result.platform},
                              {"model", result.model.empty() ? Json() : Json(result.model)},
                              {"steps", result.scenario.plan.steps},
                              {"state", outcome.status.state()},
                              {"sentence", job_sentence(result)},
                              {"ending", endings.at(static_cast<std::size_t>(outcome.ending))},
                              {"end_s", outcome.end},
                              {"npus", result.npus()},
                              {"time_s", or_null(figures.time)},
                              {"goodput", or_null(figures.goodput)},
                              {"mean_step_time_s", or_null(figures.step)},
                              {"restarts", figures.restarts},
                              {"deleted", outcome.deleted},
                              {"waits", outcome.waits},
                              {"counters", Json::object({{"created", counters.created},
                                                         {"succeeded", counters.succeeded},
                                                         {"failed", counters.failed},
                                                         {"restarted", counters.restarted},
                                                         {"deleted", counters.deleted}})},
                              {"status", status_object(result)},
                              {"conditions", condition_history(outcome)},
                              {"pods", std::move(pods)},
                              {"services", service_list(outcome)},
                              {"pod_group", std::move(group)},
                              {"events", event_list(outcome)},
                              {"training", run_list(result)},
                              {"notes", result.notes}});
  if (const auto& numerics = result.numerics; numerics.has_value()) {
    report.append("numerics",
                  Json::object({{"computed_shape", numerics->computed_shape},
                                {"data", numerics->data},
                                {"seed", numerics->seed},
                                {"failure", numerics->failure.has_value() ? numerics->failure->what() : ""}}));
  }
  return report.dump(2) + '\n';
}

std::string job_yaml(const JobResult& result) {
  std::string text = "status:";
  put_yaml(text, status_object(result), 2);
  return text;
}

}  // namespace hcclsim::cli
