#include "cli/options/point_command.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/collective_options.hpp"
#include "cli/options/run_options.hpp"
#include "cli/print/collective_report.hpp"
#include "cli/print/run_report.hpp"
#include "study/run/numerics.hpp"
#include "study/run/run.hpp"

namespace hcclsim::cli {
namespace {

/// JSON on one line, as the database keeps it.
std::string compact(const std::string& json) { return Json::parse(json).dump(); }

/// Says whether a file still is what names the point: a result of another file would be stored under this one's name.
void require_unchanged(const study::Point& point, const std::string& input) {
  const std::string& path = point.files.at(input);
  if (study::content_hash_of_file(path) == point.hashes.at(input)) return;
  bad_input("sweep", "{}: has changed since the sweep began; give the command again, which takes it as a new file",
            path);
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
    study::Experiment experiment(values_.spec, cluster);
    RunReport report(simulate_run(experiment, {.compared = values_.advice, .explained = values_.explain}), values_);
    if (values_.numerics.enabled) train(experiment, interruption, report);
    return {compact(json_report(report)),
            {{"step_time_s", report.step_time()},
             {"images_per_s", report.images_per_second()},
             {"exposed_communication_s", report.view.exposed},
             {"hbm_peak_bytes", static_cast<double>(report.hbm.peak())}}};
  }

 private:
  void train(const study::Experiment& experiment, const Interruption& interruption, RunReport& report) const {
    const auto interrupted = [&] { return interruption.signal() != 0; };
    static_cast<void>(study::compute_numerics(values_.spec, experiment, {.stop = interrupted}, report));
    if (interrupted()) throw Error(ErrorCode::internal, study::interrupted_kind, "interrupted");
    study::require_exact(*report.numerics);
  }

  RunOptions values_;
};

class CollectivePoint : public PointCommand {
 public:
  CollectivePoint() : PointCommand("collective") { add_collective_options(options(), values_); }
  [[nodiscard]] const std::string& platform() const override { return values_.platform; }
  [[nodiscard]] const std::vector<sim::PlatformEdit>& platform_edits() const override {
    return values_.spec.platform.edits;
  }

  [[nodiscard]] study::Computed compute(sim::Cluster& cluster, const Interruption& /*interruption*/) override {
    const study::MeasureSpec spec = measure_spec(options(), values_);
    const Measurement measurement = measure_collective(spec, cluster);
    if (!measurement.ok()) throw Error(ErrorCode::check_failed, "collective", values_.op + " gives wrong results");
    const MeasurementRow& largest = measurement.rows.back();
    return {compact(collective_json(measurement, spec, values_.op)),
            {{"time_s", largest.time}, {"algbw_Bps", largest.speed.algbw}, {"busbw_Bps", largest.speed.busbw}}};
  }

 private:
  CollectiveOptions values_;
};

}  // namespace

std::unique_ptr<PointCommand> PointCommand::make(const std::string& name) {
  if (name == "run") return std::make_unique<RunPoint>();
  if (name == "collective") return std::make_unique<CollectivePoint>();
  bad_input("option", "'{}' cannot be swept; commands that can: run, collective", name);
}

void PointCommand::set(const std::string& name, const std::string& value) {
  Option& option = options_.get(name == collective_axis ? "OP" : "--" + name);
  if (option.is_flag() && value != "true" && value != "false") {
    bad_input("option", "--{}: '{}' is neither true nor false", name, value);
  }
  option.replace(option.is_flag() && value == "false" ? std::nullopt : std::optional(value));
}

void PointCommand::set(const Json& inputs) {
  std::string edits;
  for (const auto& [name, value] : inputs.items()) {
    if (is_variable(name)) continue;  // it is in the environment
    if (is_edit(name)) {
      edits += fmt::format("{}{}={}", edits.empty() ? "" : ",", name, value.get<std::string>());
    } else {
      set(name, value.get<std::string>());
    }
  }
  if (!edits.empty()) set("set", edits);
}

bool is_edit(const std::string& axis) { return axis.find('[') != std::string::npos || axis.starts_with("platform."); }

bool is_variable(const std::string& axis) { return axis.starts_with("HCCL_") || axis == "RANK_TABLE_FILE"; }

study::LoadGroup group_loader(const Interruption& interruption) {
  return [&interruption](const study::Point& first) -> study::ComputePoint {
    const std::unique_ptr<PointCommand> command = PointCommand::make(first.command);
    command->set(first.inputs);
    auto cluster = std::make_shared<sim::Cluster>(first.files.at("platform"), command->platform_edits());
    require_unchanged(first, "platform");
    return [cluster = std::move(cluster), &interruption](const study::Point& point) {
      const std::unique_ptr<PointCommand> one = PointCommand::make(point.command);
      one->set(point.inputs);
      study::Computed computed = one->compute(*cluster, interruption);
      for (const auto& [input, path] : point.files) {
        if (input != "platform") require_unchanged(point, input);  // that one is in memory
      }
      return computed;
    };
  };
}

std::string command_line(const std::string& command, const Json& inputs) {
  std::string variables;
  std::string arguments;
  for (const auto& [name, json] : inputs.items()) {
    const auto value = json.get<std::string>();
    if (is_variable(name)) {
      variables += fmt::format("{}={} ", name, shell_word(value));
    } else if (name == collective_axis) {
      arguments.insert(0, " " + value);
    } else if (is_edit(name)) {
      arguments += fmt::format(" --set {}", shell_word(fmt::format("{}={}", name, value)));
    } else if (value == "true") {
      arguments += fmt::format(" --{}", name);
    } else if (value != "false") {
      arguments += fmt::format(" --{} {}", name, shell_word(value));
    }
  }
  return fmt::format("{}hcclsim {}{}", variables, command, arguments);
}

}  // namespace hcclsim::cli
