#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/print/job/job_report.hpp"
#include "cli/print/job/kubectl_words.hpp"
#include "cli/terminal/output.hpp"
#include "study/jobs/job/training.hpp"

namespace hcclsim::cli {
namespace {

using study::JobEnding;
using study::JobOutcome;
using study::JobResult;
using study::Pod;
using study::PodStage;

std::string date_text(Seconds date) { return fmt::format("{:.3f}", date); }

/// The end of what there is to see of a pod.
Seconds end_of(const Pod& pod, const JobOutcome& outcome) { return pod.deleted.value_or(outcome.end); }

std::string job_table(const JobResult& result) {
  Table table("<NAME|<STATE|<AGE|<SCHEDULER|<PS|<WORKER");
  const auto counts = [&](study::JobRole role) {
    if (result.job.of(role) == nullptr) return std::string("-");
    const study::ReplicaStatus& status = result.outcome.status.of(role);
    return fmt::format("{} active, {} succeeded, {} failed of {}", status.active, status.succeeded, status.failed,
                       result.job.replicas_of(role));
  };
  table.add_row({result.job.name, std::string(result.outcome.status.state()), kubectl_age(result.outcome.end),
                 counts(study::JobRole::scheduler), counts(study::JobRole::ps), counts(study::JobRole::worker)});
  return table.to_string();
}

std::string pod_table(const JobResult& result) {
  const JobOutcome& outcome = result.outcome;
  const bool some_deleted =
      std::any_of(outcome.pods.begin(), outcome.pods.end(), [](const Pod& pod) { return !pod.is_live(); });
  Table table(std::string("<NAME|<READY|<STATUS|RESTARTS|EXIT|<AGE|<IP|<NODE|<NPUS") +
              (some_deleted ? "|<DELETED" : ""));
  for (const Pod& pod : outcome.pods) {
    const std::size_t containers = result.job.of(pod.role)->pod.containers.size();
    std::vector<std::string> cells{
        pod.name,
        fmt::format("{}/{}", pod.runs() && pod.is_live() ? containers : 0, containers),
        pod.is_live() ? std::string(kubectl_status(pod)) : fmt::format("(was {})", kubectl_status(pod)),
        std::to_string(pod.restarts()),
        pod.exit_code.has_value()
            ? *pod.exit_code == study::unknown_exit_code ? "0xbeef" : std::to_string(*pod.exit_code)
            : "",
        kubectl_age(end_of(pod, outcome) - pod.created()),
        pod.ip,
        pod.seat.has_value() ? result.servers[pod.seat->server].name : "<none>",
        pod.seat.has_value() ? number_runs(pod.seat->npus) : ""};
    if (some_deleted) cells.push_back(pod.is_live() ? "" : "at " + date_text(*pod.deleted));
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

std::string service_table(const JobOutcome& outcome) {
  Table table("<NAME|<TYPE|<CLUSTER-IP|<PORT|<DELETED");
  for (const study::JobService& service : outcome.services) {
    table.add_row({service.name, "ClusterIP", service.cluster_ip,
                   fmt::format("{} {}/TCP", study::job_port_name, service.port),
                   service.deleted.has_value() ? "at " + date_text(*service.deleted) : ""});
  }
  return table.to_string("  ");
}

std::string condition_table(const JobOutcome& outcome) {
  Table table("<TYPE|<STATUS|SINCE s|<REASON|<MESSAGE");
  for (const study::JobCondition& condition : outcome.status.conditions) {
    table.add_row({std::string(name_of(condition.type)), condition.status ? "True" : "False",
                   date_text(condition.last_transition), condition.reason, condition.message});
  }
  return table.to_string("  ");
}

std::string event_table(const JobOutcome& outcome) {
  Table table("FIRST s|LAST s|COUNT|<TYPE|<REASON|<OBJECT|<MESSAGE");
  for (const study::JobEvent& event : outcome.events) {
    table.add_row({date_text(event.first), date_text(event.last), std::to_string(event.count),
                   event.warning ? "Warning" : "Normal", event.reason, event.object, event.message});
  }
  return table.to_string("  ");
}

std::string step_times_text(const study::StepTimes& times) {
  if (times.change_at == study::StepTimes::never) return milliseconds(times.first);
  return fmt::format("{}; from step {} {}", milliseconds(times.first), times.change_at, milliseconds(times.then));
}

std::string training_text(const JobResult& result) {
  std::string text =
      fmt::format("Training: {} steps, {}\n", result.scenario.plan.steps,
                  result.model.empty() ? "their time as given"
                                       : fmt::format("each of {} on the NPUs of the workers", result.model));
  if (result.outcome.runs.empty()) return text + "  never begun\n";
  Table table("<BY|START s|END s|FROM STEP|DONE|STEP ms|<NPUS|<ENDED");
  for (const study::TrainingRun& run : result.outcome.runs) {
    table.add_row({run.worker.empty() ? "all" : run.worker, date_text(run.start), date_text(run.end.value()),
                   std::to_string(run.first_step), std::to_string(run.steps), step_times_text(run.step_times),
                   number_runs(run.hosts.npus), run.why_ended});
  }
  return text + table.to_string("  ");
}

std::string number_text(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "not finite"; }

/// What the runs of the training computed.
std::string numerics_text(const JobResult& result) {
  const study::JobNumerics& numerics = *result.numerics;
  if (numerics.computed_shape.empty()) return "Real gradients: no step was computed\n";
  std::string text = fmt::format("Real gradients: {} on every NPU, {}, seed {}\n", numerics.computed_shape,
                                 numerics.data, numerics.seed);
  Table table("<BY|FROM STEP|DONE|LOSS FIRST|LOSS LAST|ACCURACY LAST");
  bool resumed = false;
  for (std::size_t number = 0; number < numerics.runs.size(); ++number) {
    const study::TrainingRun& run = result.outcome.runs[number];
    const std::vector<study::JobStep>& steps = numerics.runs[number];
    if (steps.empty()) continue;
    resumed = resumed || run.first_step > 0;
    table.add_row({run.worker.empty() ? "all" : run.worker, std::to_string(run.first_step),
                   std::to_string(steps.size()), number_text(steps.front().loss), number_text(steps.back().loss),
                   number_text(steps.back().accuracy)});
  }
  text += table.to_string("  ");
  if (resumed) {
    text +=
        result.job.of(study::JobRole::ps) == nullptr
            ? "  A run from a later step than 0 goes on from the checkpoint before it: weights, what the optimizer\n"
              "  keeps, and the position in the data.\n"
            : "  A run from a later step than 0 goes on from the weights of the checkpoint before it; what the\n"
              "  optimizers of the servers kept is lost.\n";
  }
  return text;
}

// --- The timeline: a row for the job and one for every pod

constexpr std::size_t timeline_columns = 64;

/// The letters of the stages that a pod is in, in the order of PodStage.
constexpr std::string_view stage_letters = ".cw#b?SF";

/// What shows in a part of the timeline: training if there is any, else the stage that takes most of it.
char letter_between(const Pod& pod, Seconds from, Seconds to, Seconds end) {
  std::array<Seconds, stage_letters.size()> times{};
  for (std::size_t i = 0; i < pod.stages.size(); ++i) {
    const Seconds until = i + 1 < pod.stages.size() ? pod.stages[i + 1].date : end;
    const Seconds time = std::min(until, to) - std::max(pod.stages[i].date, from);
    if (time > 0) times[static_cast<std::size_t>(pod.stages[i].stage)] += time;
  }
  const auto most = std::max_element(times.begin(), times.end());
  if (*most == 0) return ' ';
  if (times[static_cast<std::size_t>(PodStage::training)] > 0) return '#';
  return stage_letters[static_cast<std::size_t>(most - times.begin())];
}

std::string condition_row(const JobOutcome& outcome, Seconds part) {
  std::string row(timeline_columns, ' ');
  std::size_t next = 0;
  char state = ' ';
  for (std::size_t column = 0; column < timeline_columns; ++column) {
    const Seconds to = static_cast<double>(column + 1) * part;
    const bool last = column + 1 == timeline_columns;
    while (next < outcome.status.history.size() && (last || outcome.status.history[next].first < to)) {
      constexpr std::string_view letters = "CrRSF";  // created, running, restarting, succeeded, failed
      state = letters[static_cast<std::size_t>(outcome.status.history[next].second)];
      ++next;
    }
    row[column] = state;
  }
  return row;
}

std::string timeline_text(const JobResult& result) {
  const JobOutcome& outcome = result.outcome;
  // A state that begins at the very end shows too.
  const Seconds part = outcome.end / timeline_columns;
  std::string text = fmt::format("Timeline, 0 to {} s, {:.3g} s per character\n", date_text(outcome.end), part);
  if (part <= 0) return text;
  std::size_t width = result.job.name.size();
  for (const Pod& pod : outcome.pods) width = std::max(width, pod.name.size());
  text += fmt::format("  {:<{}}  |{}|\n", result.job.name, width, condition_row(outcome, part));
  for (const Pod& pod : outcome.pods) {
    std::string row;
    for (std::size_t column = 0; column < timeline_columns; ++column) {
      row += letter_between(pod, static_cast<double>(column) * part, static_cast<double>(column + 1) * part,
                            end_of(pod, outcome));
    }
    text += fmt::format("  {:<{}}  |{}|\n", pod.name, width, row);
  }
  return text +
         "  job: C created, r running, R restarting, S succeeded, F failed; pods: . no server, c images and "
         "container,\n"
         "  w process starts or waits, # trains, b back-off, ? server lost, S succeeded, F failed\n";
}

}  // namespace

std::string job_sentence(const JobResult& result) {
  const JobOutcome& outcome = result.outcome;
  const std::string& name = result.job.name;
  if (outcome.status.is_finished()) {
    const study::JobCondition& last = outcome.status.conditions.back();
    return fmt::format("{} after {} s: {}", name_of(last.type), date_text(*outcome.status.completion), last.message);
  }
  std::string waits;
  for (std::size_t i = 0; i < outcome.waits.size() && i < 3; ++i) waits += (i == 0 ? ": " : "; ") + outcome.waits[i];
  if (outcome.waits.size() > 3) waits += fmt::format("; and {} more", outcome.waits.size() - 3);
  if (outcome.ending == JobEnding::out_of_time) {
    return fmt::format("MSJob {} has not ended at {} s, where the simulation stops (--until){}", name,
                       date_text(outcome.end), waits);
  }
  return fmt::format("MSJob {} has not ended, and after {} s nothing more happens{}", name, date_text(outcome.end),
                     waits);
}

std::string job_text(const JobResult& result) {
  const JobOutcome& outcome = result.outcome;
  std::string text =
      fmt::format("{}/{} on {}, {} server{}\n{}\n", result.job.name_space, result.job.name, result.platform,
                  result.servers.size(), result.servers.size() == 1 ? "" : "s", job_table(result));
  text += job_sentence(result) + '\n';
  text += "\n" + pod_table(result);
  if (!outcome.services.empty()) text += "\nServices\n" + service_table(outcome);
  if (outcome.pod_group.has_value()) {
    text +=
        fmt::format("\nPodGroup {}, minMember {}{}\n", name_of(outcome.pod_group->phase), outcome.pod_group->min_member,
                    outcome.pod_group->deleted.has_value()
                        ? fmt::format(", deleted at {} s", date_text(*outcome.pod_group->deleted))
                        : "");
  }
  text += "\nConditions\n" + condition_table(outcome);
  text += "\nEvents\n" + event_table(outcome);
  text += "\n" + training_text(result);
  if (result.numerics.has_value()) text += "\n" + numerics_text(result);
  text += "\n" + timeline_text(result);
  for (const std::string& note : result.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

}  // namespace hcclsim::cli
