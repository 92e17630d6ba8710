#include "cli/options/point_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/collective_options.hpp"
#include "cli/options/job_options.hpp"
#include "cli/options/run_options.hpp"
#include "cli/print/collective_report.hpp"
#include "cli/print/job/job_report.hpp"
#include "cli/print/ps_report.hpp"
#include "cli/print/run_report.hpp"
#include "study/plan_search/plan_search.hpp"
#include "study/ps/ps.hpp"
#include "study/run/numerics.hpp"
#include "study/run/run.hpp"

namespace hcclsim::cli {
namespace {

/// JSON on one line, as the database keeps it.
std::string compact(const std::string& json) { return Json::parse(json).dump(); }

/// Points of different routings share a loaded platform.
void use_routing(const study::PlatformSpec& spec, sim::Cluster& cluster) {
  if (spec.routing.has_value()) cluster.use_routing(*spec.routing);
}

class RunPoint : public PointCommand {
 public:
  RunPoint() : PointCommand("run") { add_run_options(options(), values_); }
  [[nodiscard]] const std::string& platform() const override { return values_.platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values_.spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& interruption) override {
    finish_run_options(options(), values_);
    values_.format = OutputFormat::json;
    use_routing(values_.spec.platform, cluster);
    if (values_.ps.enabled) return compute_with_servers(cluster);
    study::Experiment experiment(values_.spec, cluster);
    std::optional<study::TrainingClock> clock;
    if (values_.numerics.enabled) clock.emplace(experiment, values_.spec.iterations, past_of(*values_.spec.numerics));
    RunReport report(simulate_run(experiment, {.compared = values_.advice,
                                               .explained = values_.explain,
                                               .links = {.most = values_.links},
                                               .by_rank = true}),
                     values_);
    if (values_.numerics.enabled) train(experiment, *clock, interruption, report);
    return {compact(json_report(report)),
            {{"step_time_s", report.step_time()},
             {"images_per_s", report.images_per_second()},
             {"exposed_communication_s", report.view.exposed},
             {"hbm_peak_bytes", static_cast<double>(report.hbm.peak())}}};
  }

 private:
  [[nodiscard]] study::Computed compute_with_servers(sim::Cluster& cluster) const {
    study::PsExperiment experiment(values_.spec, values_.ps.spec, cluster);
    const study::PsResult result = simulate_ps(experiment, values_.ps.spec, true);
    if (!result.outcome.failure.empty()) {
      return {.result = compact(ps_json(result)), .failure = {"ps", result.outcome.failure}};
    }
    return {compact(ps_json(result)),
            {{"step_time_s", result.step_time()}, {"images_per_s", result.samples_per_second()}}};
  }

  void train(const study::Experiment& experiment, study::TrainingClock& clock, const Interruption& interruption,
             RunReport& report) const {
    const auto interrupted = [&] { return interruption.signal() != 0; };
    const study::Training training =
        study::compute_numerics(values_.spec, experiment, clock, {.stop = interrupted}, report);
    if (training.failure.has_value()) throw Error(*training.failure);
    if (interrupted()) throw Error(ErrorCode::internal, study::interrupted_kind, "interrupted");
    study::require_exact(*report.numerics);
  }

  RunOptions values_;
};

/// Two figures of a run: its memory, and the bound of its step (study::estimate_command) or the step itself, simulated
/// (study::step_command).
class StepPoint : public PointCommand {
 public:
  explicit StepPoint(const std::string& name) : PointCommand(name) { add_run_options(options(), values_); }
  [[nodiscard]] const std::string& platform() const override { return values_.platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values_.spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    finish_run_options(options(), values_);
    use_routing(values_.spec.platform, cluster);
    study::Experiment experiment(values_.spec, cluster);
    const auto peak = static_cast<double>(study::hbm_peak(experiment));
    if (name() == study::step_command) {
      return {"{}", {{"step_time_s", study::simulated_step(experiment)}, {"hbm_peak_bytes", peak}}};
    }
    return {"{}", {{"time_s", study::step_bound(experiment)}, {"hbm_peak_bytes", peak}}};
  }

 private:
  RunOptions values_;
};

class CollectivePoint : public PointCommand {
 public:
  CollectivePoint() : PointCommand("collective", "OP") { add_collective_options(options(), values_); }
  [[nodiscard]] const std::string& platform() const override { return values_.platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values_.spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    study::MeasureSpec spec = measure_spec(options(), values_);
    spec.uncertainty = false;  // a sweep varies what is assumed itself
    spec.routing_seeds = 0;    // … and the routing
    use_routing(spec.platform, cluster);
    const Measurement measurement = measure_collective(spec, cluster);
    if (!measurement.ok()) throw Error(ErrorCode::check_failed, "collective", values_.op + " gives wrong results");
    const MeasurementRow& largest = measurement.rows.back();
    return {compact(collective_json(measurement, spec, values_.op)),
            {{"time_s", largest.time}, {"algbw_Bps", largest.speed.algbw}, {"busbw_Bps", largest.speed.busbw}}};
  }

 private:
  CollectiveOptions values_;
};

class JobPoint : public PointCommand {
 public:
  JobPoint() : PointCommand("job", "FILE") { add_job_options(options(), values_); }
  [[nodiscard]] const std::string& platform() const override { return values_.run.platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values_.run.spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    finish_job_options(options(), values_);
    use_routing(values_.run.spec.platform, cluster);
    const study::JobResult result = study::run_job(values_.spec, cluster);
    if (result.numerics.has_value() && result.numerics->failure.has_value()) throw Error(*result.numerics->failure);
    study::Computed computed{.result = compact(job_json(result))};
    const study::JobFigures figures = result.figures();
    const auto add = [&](const char* column, const std::optional<double>& figure) {
      if (figure.has_value()) computed.figures.emplace_back(column, *figure);
    };
    add("step_time_s", figures.step);
    add("time_s", figures.time);
    add("goodput", figures.goodput);
    add("restarts", static_cast<double>(figures.restarts));
    if (!result.succeeded()) computed.failure = {"job", job_sentence(result)};
    return computed;
  }

 private:
  JobOptions values_;
};

}  // namespace

std::unique_ptr<PointCommand> PointCommand::make(const std::string& name) {
  if (name == "run") return std::make_unique<RunPoint>();
  if (name == "collective") return std::make_unique<CollectivePoint>();
  if (name == "job") return std::make_unique<JobPoint>();
  if (name == study::estimate_command || name == study::step_command) return std::make_unique<StepPoint>(name);
  bad_input("option", "'{}' cannot be swept; commands that can: {}", name, fmt::join(swept_commands, ", "));
}

Option* PointCommand::find(const std::string& axis) const {
  return options_.find(!argument_.empty() && axis == name() ? argument_ : "--" + axis);
}

void PointCommand::set(const std::string& name, const std::string& value) {
  Option* const found = find(name);
  if (found == nullptr) internal_error("{} has no option of axis {}", options_.name(), name);
  Option& option = *found;
  if (option.is_flag() && value != "true" && value != "false") {
    bad_input("option", "--{}: '{}' is neither true nor false", name, value);
  }
  option.replace(option.is_flag() && value == "false" ? std::nullopt : std::optional(value));
}

void PointCommand::set(const Json& inputs) {
  std::string edits;
  for (const auto& [name, value] : inputs.items()) {
    if (study::is_variable(name)) continue;  // it is in the environment
    if (study::is_edit(name)) {
      edits += fmt::format("{}{}={}", edits.empty() ? "" : ",", name, value.get<std::string>());
    } else {
      set(name, value.get<std::string>());
    }
  }
  if (!edits.empty()) set("set", edits);
}

study::LoadGroup group_loader(const Interruption& interruption) {
  return [&interruption](const study::Point& first) -> study::ComputePoint {
    const std::unique_ptr<PointCommand> command = PointCommand::make(first.command);
    command->set(first.inputs);
    auto cluster = std::make_shared<sim::Cluster>(first.files.at("platform"), command->platform_edits());
    study::require_unchanged(first, "platform");
    // Each point is computed in a process of its own, which begins with these: a platform and an unused command.
    std::shared_ptr<PointCommand> unused = PointCommand::make(first.command);
    return [cluster = std::move(cluster), unused = std::move(unused), &interruption](const study::Point& point) {
      if (point.command != unused->name()) internal_error("'{}' in a group of '{}'", point.command, unused->name());
      unused->set(point.inputs);
      study::Computed computed = unused->compute(*cluster, interruption);
      for (const auto& [input, path] : point.files) {
        if (input != "platform") study::require_unchanged(point, input);  // that one is in memory
      }
      return computed;
    };
  };
}

}  // namespace hcclsim::cli
