#include "cli/commands/sweep/point_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/collective_options.hpp"
#include "cli/options/job_options.hpp"
#include "cli/options/training/run_options.hpp"
#include "cli/print/collective_report.hpp"
#include "cli/print/job/job_report.hpp"
#include "cli/print/run/ps_report.hpp"
#include "cli/print/run/run_report.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/jobs/ps/ps.hpp"
#include "study/run/numerics/numerics.hpp"
#include "study/run/run.hpp"

namespace hcclsim::cli {
namespace {

/// JSON on one line, as the database keeps it.
std::string compact(const std::string& json) { return Json::parse(json).dump(); }

/// SimGrid holds one simulation per process; training starts threads, which a further simulation in a child has not.
bool leaves_nothing_of(const RunOptions& run) {
  return run.spec.simulation.network == sim::NetworkKind::fluid && !run.numerics.enabled && !run.ps.enabled;
}

/// Points of different routings share a loaded platform.
void use_routing(const study::PlatformSpec& spec, sim::Cluster& cluster) {
  if (spec.routing.has_value()) cluster.use_routing(*spec.routing);
}

/// A command with its values: made of a name, a place in which its options put them, and what declares these.
template <typename Values>
class PointOf : public PointCommand {
 protected:
  PointOf(const std::string& name, void (*declare)(Command&, Values&), const std::string& argument = "")
      : PointCommand(name, argument), unset_(declared(declare)) {}
  void clear_values() override { values_ = unset_; }
  [[nodiscard]] Values& values() { return values_; }
  [[nodiscard]] const Values& values() const { return values_; }

 private:
  const Values& declared(void (*declare)(Command&, Values&)) {
    declare(options(), values_);
    return values_;
  }

  Values values_;
  Values unset_;  ///< as they were declared
};

class RunPoint : public PointOf<RunOptions> {
 public:
  RunPoint() : PointOf("run", add_run_options) {}
  [[nodiscard]] const std::string& platform() const override { return values().platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values().spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& interruption) override {
    finish_run_options(options(), values());
    values().format = OutputFormat::json;
    use_routing(values().spec.platform, cluster);
    if (values().ps.enabled) return compute_with_servers(cluster);
    study::Experiment experiment(values().spec, cluster);
    std::optional<study::TrainingClock> clock;
    if (values().numerics.enabled)
      clock.emplace(experiment, values().spec.simulation.iterations, past_of(*values().spec.numerics));
    RunReport report(simulate_run(experiment, {.compared = values().advice,
                                               .compared_at_any_size = true,
                                               .hook_compared = values().advice,
                                               .explained = values().explain,
                                               .links = {.most = values().links},
                                               .by_rank = true}),
                     values());
    if (values().numerics.enabled) train(experiment, *clock, interruption, report);
    return {compact(json_report(report)),
            {{"step_time_s", report.step_time()},
             {"images_per_s", report.images_per_second()},
             {"exposed_communication_s", report.view.exposed},
             {"hbm_peak_bytes", static_cast<double>(report.fullest().hbm.peak())}}};
  }
  [[nodiscard]] bool leaves_nothing() const override { return leaves_nothing_of(values()); }

 private:
  [[nodiscard]] study::Computed compute_with_servers(sim::Cluster& cluster) const {
    study::PsExperiment experiment(values().spec, values().ps.spec, cluster);
    const study::PsResult result = simulate_ps(experiment, values().ps.spec, true);
    if (!result.outcome.failure.empty()) {
      return {.result = compact(ps_json(result)), .failure = {"ps", result.outcome.failure}};
    }
    return {compact(ps_json(result)),
            {{"step_time_s", result.step_time()}, {"images_per_s", result.samples_per_second()}}};
  }

  void train(const study::Experiment& experiment, study::TrainingClock& clock, const Interruption& interruption,
             RunReport& report) const {
    const auto interrupted = [&] { return interruption.signal() != 0; };
    const study::Training training = study::compute_numerics(experiment, report.step, report.start_up_plan(), clock,
                                                             {.stop = interrupted}, report.numerics.emplace());
    if (training.failure.has_value()) throw Error(*training.failure);
    if (interrupted()) throw Error(ErrorCode::internal, study::interrupted_kind, "interrupted");
    study::require_exact(*report.numerics);
  }
};

/// Of a run: its memory, and the bound of its step (study::estimate_command) or the step itself, simulated
/// (study::step_command); or the split of its gradients that is found for it (study::split_command).
class StepPoint : public PointOf<RunOptions> {
 public:
  explicit StepPoint(const std::string& name) : PointOf(name, add_run_options) {}
  [[nodiscard]] const std::string& platform() const override { return values().platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values().spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    finish_run_options(options(), values());
    use_routing(values().spec.platform, cluster);
    study::Experiment experiment(values().spec, cluster, &networks_);
    if (name() == study::split_command) {
      const auto last = study::fastest_split(experiment);
      return {Json{{"split", last.has_value() ? fmt::format("{}", fmt::join(*last, ",")) : ""}}.dump(), {}};
    }
    const auto peak = static_cast<double>(study::hbm_peak(experiment));
    const std::string result = Json{{"npus", experiment.npus}}.dump();
    if (name() == study::step_command) {
      return {result, {{"step_time_s", study::simulated_step(experiment)}, {"hbm_peak_bytes", peak}}};
    }
    return {result, {{"time_s", study::step_bound(experiment)}, {"hbm_peak_bytes", peak}}};
  }
  [[nodiscard]] bool leaves_nothing() const override { return leaves_nothing_of(values()); }

 private:
  study::ShardedNetworks networks_;  // of the points before
};

class CollectivePoint : public PointOf<CollectiveOptions> {
 public:
  CollectivePoint() : PointOf("collective", add_collective_options, "OP") {}
  [[nodiscard]] const std::string& platform() const override { return values().platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values().spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    study::MeasureSpec spec = measure_spec(options(), values());
    spec.uncertainty = false;  // a sweep varies what is assumed itself
    spec.routing_seeds = 0;    // … and the routing
    use_routing(spec.platform, cluster);
    const Measurement measurement = measure_collective(spec, cluster);
    if (!measurement.ok()) throw Error(ErrorCode::check_failed, "collective", values().op + " gives wrong results");
    const MeasurementRow& largest = measurement.rows.back();
    return {compact(collective_json(measurement, spec, values().op)),
            {{"time_s", largest.time}, {"algbw_Bps", largest.speed.algbw}, {"busbw_Bps", largest.speed.busbw}}};
  }
};

class JobPoint : public PointOf<JobOptions> {
 public:
  JobPoint() : PointOf("job", add_job_options, "FILE") {}
  [[nodiscard]] const std::string& platform() const override { return values().run.platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values().run.spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    finish_job_options(options(), values());
    use_routing(values().run.spec.platform, cluster);
    const study::JobResult result = study::run_job(values().spec, cluster);
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
};

}  // namespace

std::unique_ptr<PointCommand> PointCommand::make(const std::string& name) {
  if (name == "run") return std::make_unique<RunPoint>();
  if (name == "collective") return std::make_unique<CollectivePoint>();
  if (name == "job") return std::make_unique<JobPoint>();
  if (name == study::estimate_command || name == study::step_command || name == study::split_command) {
    return std::make_unique<StepPoint>(name);
  }
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

void PointCommand::clear() {
  for (const std::unique_ptr<Option>& option : options_.options()) {
    if (option->given()) option->replace(std::nullopt);
  }
  clear_values();
}

study::LoadGroup group_loader(const Interruption& interruption) {
  return [&interruption](const study::Point& first) -> study::ComputePoint {
    const std::unique_ptr<PointCommand> command = PointCommand::make(first.command);
    command->set(first.inputs);
    auto cluster = std::make_shared<sim::Cluster>(first.files.at("platform"), command->platform_edits());
    study::require_unchanged(first, "platform");
    const std::shared_ptr<PointCommand> reused = PointCommand::make(first.command);
    return {.compute =
                [cluster = std::move(cluster), reused, &interruption](const study::Point& point) {
                  if (point.command != reused->name()) {
                    internal_error("'{}' in a group of '{}'", point.command, reused->name());
                  }
                  reused->clear();
                  reused->set(point.inputs);
                  sim::Cluster own = cluster->of_another_job();
                  study::Computed computed = reused->compute(own, interruption);
                  for (const auto& [input, path] : point.files) {
                    if (input != "platform") study::require_unchanged(point, input);  // that one is in memory
                  }
                  return computed;
                },
            .reusable = [reused] { return reused->leaves_nothing(); }};
  };
}

}  // namespace hcclsim::cli
