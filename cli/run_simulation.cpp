#include "cli/run_simulation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/comparisons.hpp"
#include "cli/print/link_sources.hpp"
#include "cli/run_explanation.hpp"
#include "hccl/comm/communicator.hpp"
#include "sim/network/link_utilisation.hpp"

namespace hcclsim::cli {
namespace {

std::string split_name(const RunOptions& options) {
  if (options.split_by_size.has_value()) return fmt::format("by size {}", fmt::join(*options.split_by_size, ","));
  if (options.split_by_idx.has_value()) return fmt::format("by index {}", fmt::join(*options.split_by_idx, ","));
  return options.split == "default" ? "default 96.54/3.46" : options.split;
}

/// Options of the simulated step that the report does not hold otherwise.
std::vector<std::pair<std::string, std::string>> settings_of(const RunOptions& options) {
  const device::SkewOptions& skew = options.skew;
  std::vector<std::string> edits;
  for (const sim::PlatformEdit& edit : options.platform_edits) edits.push_back(edit.target + "=" + edit.value);
  std::vector<std::string> profiles;
  for (const std::string& file : options.profiles) profiles.push_back(std::filesystem::path(file).filename().string());
  const auto number = [](const auto& value) { return value.has_value() ? fmt::to_string(*value) : std::string(); };
  std::vector<std::pair<std::string, std::string>> settings{
      {"input", number(options.input)},
      {"classes", number(options.classes)},
      {"fc-bias", options.fc_bias ? "on" : "off"},
      {"profile", fmt::format("{}", fmt::join(profiles, ","))},
      {"optimizer", std::string(models::name_of(options.optimizer))},
      {"comm-dtype", std::string(name_of(options.communication_type))},
      {"allreduce", std::string(hccl::name_of(options.allreduce))},
      {"levels", options.levels},
      {"set", fmt::format("{}", fmt::join(edits, " "))},
      {"start-skew", fmt::format("{}", skew.start_skew)},
      {"speed-factors", fmt::format("{}", fmt::join(skew.speeds, ","))},
      {"speed-spread", fmt::format("{}", skew.speed_spread)},
      {"jitter", fmt::format("{}", skew.jitter)},
      {"seed", fmt::format("{}", skew.seed)}};
  for (const hccl::HcclSetting& setting : options.hccl_settings) {
    settings.emplace_back(setting.variable, setting.value);
  }
  return settings;
}

/// How busy the links were in the last iteration, from the transfers that were recorded. The routes of the simulation
/// must still be good.
LinkReport link_report(const sim::Cluster& cluster, const hccl::TimedStep& step, const hccl::StepView& view) {
  constexpr std::size_t intervals = 400;  // of the step: about what a screen can show
  constexpr std::size_t most_links = 8;   // of a kind that are shown by name
  const sim::LinkUtilisation found = sim::link_utilisation(
      cluster, step.flows, {view.fp_start, view.fp_start + view.iteration_end, intervals}, most_links);
  LinkReport report{view.iteration_end / intervals, {}, {}};
  for (const sim::LinkUtilisation::OfLink& one : found.links) {
    const sim::Link& link = cluster.links()[one.link];
    report.links.push_back(
        {link.name, std::string(title_of(link.kind)), cluster.capacity(one.link), one.bytes, one.load});
  }
  for (const sim::LinkUtilisation::OfKind& one : found.kinds) {
    const std::string kind(title_of(one.kind));
    const auto busiest = std::find_if(report.links.begin(), report.links.end(),
                                      [&](const LinkReport::OfLink& link) { return link.kind == kind; });
    report.kinds.push_back({kind, busiest->capacity, one.links, one.bytes, one.busiest, one.mean});
  }
  return report;
}

}  // namespace

RunReport simulate_run(const RunOptions& options, Experiment& run, std::vector<Rank> traced) {
  RunReport report;
  report.program = run.program;
  report.hbm = run.hbm;
  const Setting setting{run.cluster, run.program, run.soc, run.costs, run.training};
  hccl::TrainingOptions training = run.training;
  training.trace_tasks = !traced.empty();
  if (!traced.empty()) training.traced = std::move(traced);
  training.record_flows = !options.html.path.empty();
  std::optional<Comparisons> further;
  const bool compared = options.format == OutputFormat::text || options.advice || !options.html.path.empty();
  if (compared) further.emplace(setting);
  std::optional<RunExplanation> explanation;
  if (options.explain) explanation.emplace(setting);
  report.step = simulate_training(run.cluster, run.program, run.soc, run.costs, training);
  report.view = hccl::StepView::of(report.step.plan, report.step.trace, training.rank);
  if (further.has_value()) further->finish(report);
  if (explanation.has_value()) explanation->finish(report);

  report.model = run.model;
  if (run.profile.has_value())
    report.profile.emplace(*run.profile, study::simulated_phases(report.view, report.step.step_times[training.rank]));
  report.platform = std::filesystem::path(run.cluster.path()).filename().string();
  report.rank_table = run.rank_table;
  report.npu = run.soc.name;
  report.npus = run.npus;
  report.rank = options.rank;
  report.amp = models::name_of(options.amp);
  report.framework = options.mindspore ? "mindspore" : "tf";
  report.hcom_parallel = options.hcom_parallel;
  report.launch = name_of(options.launch);
  report.split = split_name(options);
  report.settings = settings_of(options);
  report.loss_scale = options.loss_scale;
  report.clip_norm = options.clip_norm;
  report.network = name_of(run.training.network);
  report.hbm_capacity = run.soc.hbm_bytes;
  if (training.record_flows) report.links = link_report(run.cluster, report.step, report.view);
  report.link_sources = link_sources(run.cluster, hccl::world_communicator(run.npus).ranks);
  report.unmodelled = run.unmodelled;
  report.notes = std::move(run.notes);
  return report;
}

void compute_numerics(const RunOptions& options, const Experiment& run, NumericsSession& session, RunReport& report) {
  report.numerics = run_numerics(
      options, {.npus = run.npus, .soc = run.soc, .plan = report.step.plan, .iterations = report.view.iterations},
      session);
}

}  // namespace hcclsim::cli
