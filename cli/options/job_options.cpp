#include "cli/options/job_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* job_group = "The job";

/// Why an option of `run` is not of jobs; empty: it is.
std::string_view why_not_of_jobs(const Option& option) {
  if (option.key() == "fault") return "whose failures --fail gives";
  if (option.key() == "iterations") return "whose training --steps makes longer";
  constexpr std::array<std::string_view, 8> of_one_step{
      "advice", "explain",       "explain-memory", "explain-uncertainty",
      "links",  "routing-seeds", "trace-ranks",    "uncertainty"};
  constexpr std::array<std::string_view, 6> of_trained_runs{"check-gradients", "load",         "plain-beside", "save",
                                                            "save-every",      "save-diverged"};
  constexpr std::array<std::string_view, 6> of_placement{"group", "npus",       "npus-list",
                                                         "rank",  "rank-table", "split-group"};
  const auto is_one_of = [&](std::span<const std::string_view> keys) {
    return std::find(keys.begin(), keys.end(), option.key()) != keys.end();
  };
  if (option.group() == ps_group) return "whose PS pods are the parameter servers";
  if (option.group() == failure_group) return "whose failures --fail gives";
  if (is_one_of(of_trained_runs)) {
    return "which are trained as a whole, from checkpoints of their own (--checkpoint-every)";
  }
  if (option.group() == numerics_group) return "";
  if (is_one_of(of_one_step) || option.role() == Role::writes_file) return "of which a single step is not shown";
  return is_one_of(of_placement) ? "whose pods get their NPUs by themselves" : "";
}

Value job_time(Seconds& target) { return parsed(study::parse_job_time, target); }

Seconds parse_step_time(const std::string& text) {
  const Seconds time = study::parse_job_time(text);
  if (time <= 0) bad_input("option", "'{}' is no time of a step; give one such as 12ms", text);
  return time;
}

Bytes parse_memory(const std::string& text) {
  const Bytes bytes = parse_bytes(text);
  constexpr Bytes most = Bytes{1} << 50;
  if (bytes > most) bad_input("option", "'{}' is more than 1 PiB", text);
  return bytes;
}

void add_scenario_options(Command& command, JobOptions& options) {
  command.begin_group(job_group);
  study::JobScenario& scenario = options.spec.scenario;
  command.add("--steps", whole_number(scenario.plan.steps, 1, 1'000'000'000'000), "Training steps of the job")
      .with_default();
  command
      .add("--step-time", parsed(parse_step_time, options.spec.step_time),
           "Time of a step, such as 12ms, in place of its simulation")
      .value_name("TIME");
  const Value failures{
      .check = [](const std::string& given) { static_cast<void>(study::parse_job_failures({given})); },
      .take =
          [&scenario](const std::vector<std::string>& given) { scenario.failures = study::parse_job_failures(given); },
      .count = Count::list};
  command
      .add("--fail", failures,
           "What breaks, such as 'worker-1 exit 137 at 30s' or 'host server0 at 1m'; several with commas, or none")
      .value_name("FAILURE,...")
      .with_commas();
  command.add("--until", job_time(scenario.until), "Nothing is simulated after this time")
      .value_name("TIME")
      .with_default("30d");
}

void add_kubernetes_options(Command& command, JobOptions& options) {
  command.begin_group("Kubernetes");
  study::JobScenario& scenario = options.spec.scenario;
  command.add("--gang", flag(scenario.gang), "Gang scheduling also of a job without a schedulingPolicy");
  command
      .add("--packing",
           one_of({"pack", "spread"},
                  [&scenario](const std::string& word) {
                    scenario.packing = word == "pack" ? study::PodPacking::pack : study::PodPacking::spread;
                  }),
           "Which server gets a pod: the first with room, or the one with the most free NPUs")
      .with_default("pack");
  command.add("--server-cpus", whole_number(options.spec.servers.cpus, 1, 65536), "Cores of a server").with_default();
  command
      .add("--server-memory", parsed(parse_memory, options.spec.servers.memory),
           "Memory of a server (default: not counted)")
      .value_name("BYTES");
  command
      .add("--image-pull", job_time(scenario.delays.image_pull),
           "Pull of an image that a server does not have; 0s: it has all")
      .value_name("TIME")
      .with_default("30s");
  command
      .add("--container-start", job_time(scenario.delays.container_start),
           "From the images to the container of a new pod; the kubelet restarts it without")
      .value_name("TIME")
      .with_default("2s");
  command
      .add("--process-start", job_time(scenario.delays.process_start),
           "From there until the process registers or trains")
      .value_name("TIME")
      .with_default("10s");
  command
      .add("--node-lost-after", job_time(scenario.delays.node_time_out),
           "From the loss of a server until its pods count as failed")
      .value_name("TIME")
      .with_default("340s");
}

/// Those of `run` that mean something else here.
void replace_options_of_run(Command& command, JobOptions& options) {
  command
      .replace("--checkpoint-every", whole_number(options.spec.scenario.plan.checkpoint_every, 0, 1'000'000'000'000),
               "Steps between checkpoints, which take no time here; 0: none, so that training begins anew")
      .group(job_group)
      .with_default();
  command
      .replace("--format",
               one_of({"text", "json", "yaml"},
                      [&options](const std::string& word) {
                        options.format = word == "json"   ? JobFormat::json
                                         : word == "yaml" ? JobFormat::yaml
                                                          : JobFormat::text;
                      }),
               "What is printed; yaml: the status alone, as kubectl has it")
      .with_default("text");
}

}  // namespace

void add_job_options(Command& command, JobOptions& options) {
  Value file = read_file(options.spec.file);
  file.name = "YAML";
  command.add("FILE", file, "MSJob, a custom resource of the MindSpore operator for Kubernetes").required();
  add_scenario_options(command, options);
  add_kubernetes_options(command, options);
  const std::size_t before = command.options().size();
  add_run_options(command, options.run);
  for (const auto& option : std::span(command.options()).subspan(before)) {
    const std::string_view why = why_not_of_jobs(*option);
    if (!why.empty()) option->refuse(fmt::format("not of jobs, {}; give it to `hcclsim run`", why));
  }
  replace_options_of_run(command, options);
}

void finish_job_options(Command& command, JobOptions& options) {
  if (!command.get("--framework").given()) options.run.spec.step.framework = study::Framework::mindspore;
  finish_run_options(command, options.run);
  options.spec.run = options.run.spec;
  options.spec.run.platform.file = options.run.platform;
  if (options.spec.run.platform.rank_table.of_environment) {
    options.spec.run.notes.emplace_back("RANK_TABLE_FILE is set but not used: Kubernetes gives the pods their NPUs");
  }
  options.spec.run.platform.rank_table = {};
}

}  // namespace hcclsim::cli
