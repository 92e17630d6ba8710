#include "cli/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/loaded_run.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/platform_path.hpp"
#include "cli/report/tune_page.hpp"
#include "cli/run_options.hpp"
#include "cli/tune_report.hpp"
#include "study/cost_curve.hpp"
#include "study/split/optimum.hpp"
#include "study/split/percentages.hpp"

namespace hcclsim::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t curve_sizes = 29;

struct TuneCommand {
  RunOptions run;
  std::uint32_t most_segments = 8;
  std::string cost = "affine";
  std::string objective = "time,segments";
  std::string streams = "1";
  std::string verify;
};

Json json_of(const study::Phases& phases) {
  return {{"forward", *phases.forward},
          {"backward", *phases.backward},
          {"update", *phases.update},
          {"last_update", *phases.last_update},
          {"tail", *phases.tail},
          {"step", *phases.step},
          {"allreduces", phases.allreduces},
          {"overlapped", *phases.overlapped}};
}

study::Phases phases_of(const Json& json) {
  const auto get = [&](const char* key) { return json[key].get<Seconds>(); };
  return {.forward = get("forward"),
          .backward = get("backward"),
          .forward_backward = get("forward") + get("backward"),
          .allreduces = json["allreduces"].get<std::vector<Seconds>>(),
          .overlapped = json["overlapped"].get<bool>(),
          .update = get("update"),
          .last_update = get("last_update"),
          .tail = get("tail"),
          .step = get("step")};
}

/// The step with this split, in a child: when gradients are ready, when the last allreduce ends, the step time.
Child simulate(LoadedRun& run, hccl::TrainingOptions training) {
  return Child([&run, training = std::move(training)] {
    const hccl::TrainingResult result = simulate_training(run.cluster, run.workload, run.soc, run.costs, training);
    return Json{{"ready", result.gradient_ready},
                {"bp_end", result.bp_end},
                {"finish", result.segments.back().end},
                {"step", result.step_time},
                {"phases", json_of(study::simulated_phases(result))}}
        .dump();
  });
}

std::vector<study::CostPoint> costs_in_child(LoadedRun& run, const std::vector<Bytes>& sizes) {
  const Json times = Json::parse(run_in_child([&] {
    Json list = Json::array();
    for (const study::CostPoint& point :
         study::simulate_costs(run.cluster, run.soc, run.costs, run.training, run.workload.gradient_type, sizes)) {
      list.push_back(point.time);
    }
    return list.dump();
  }));
  std::vector<study::CostPoint> points;
  for (std::size_t i = 0; i < sizes.size(); ++i) points.push_back({sizes[i], times[i].get<Seconds>()});
  return points;
}

/// Every size that a segment can have, ascending.
std::vector<Bytes> segment_sizes(const study::SplitProblem& problem) {
  constexpr std::size_t most = 50'000;
  std::vector<Bytes> sizes;
  for (std::uint32_t end = 1; end <= problem.size(); ++end) {
    for (std::uint32_t begin = 0; begin < end; ++begin) sizes.push_back(problem.bytes(begin, end));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() > most) {
    bad_input("option", "--cost simulated: {} different segments to simulate; up to {}, give --cost table",
              with_thousands(sizes.size()), with_thousands(most));
  }
  return sizes;
}

study::Cost looked_up(const std::vector<study::CostPoint>& points) {
  std::map<Bytes, Seconds> times;
  for (const study::CostPoint& point : points) times[point.bytes] = point.time;
  return [times = std::move(times)](Bytes bytes) { return times.at(bytes); };
}

std::vector<hccl::Segment> segments_of(const study::Cuts& cuts) { return hccl::segments_from_last_indices(cuts); }

study::Cuts cuts_of(const std::vector<hccl::Segment>& segments) {
  study::Cuts cuts;
  for (const hccl::Segment& segment : segments) cuts.push_back(segment.last);
  return cuts;
}

/// The forward pass of what a gradient belongs to is taken in proportion to its backward pass.
std::vector<Seconds> forward_times(const study::SplitProblem& problem, const device::Workload& workload) {
  Seconds forward = 0;
  for (const device::TimedKernel& kernel : workload.kernels) {
    if (kernel.phase == models::Phase::forward) forward += kernel.duration;
  }
  const Seconds backward = problem.backward_end() - forward;
  if (forward <= 0 || backward <= 0) return {};
  std::vector<Seconds> times;
  Seconds before = forward;
  for (std::uint32_t count = 1; count <= problem.size(); ++count) {
    times.push_back(std::max(problem.ready(count) - before, 0.0) / backward * forward);
    before = std::max(before, problem.ready(count));
  }
  return times;
}

/// Last indices in parameter order of the segments from the last one back, and whether they hold the same gradients.
void add_mindspore(TuneReport& report, const device::Workload& workload) {
  const std::uint32_t n = report.gradients;
  const study::Cuts& cuts = report.tuning.best.cuts;
  report.mindspore_exact = true;
  for (std::size_t i = cuts.size(); i-- > 0;) {
    const std::uint32_t begin = i == 0 ? 0 : cuts[i - 1] + 1;
    report.mindspore.push_back(n - 1 - begin);
    for (std::uint32_t gradient = begin; gradient <= cuts[i]; ++gradient) {
      const std::uint32_t parameter = workload.gradients[gradient].parameter;
      report.mindspore_exact = report.mindspore_exact && parameter <= n - 1 - begin && parameter + cuts[i] + 1 >= n;
    }
  }
}

class Tuner {
 public:
  Tuner(const TuneCommand& command, const std::string& platform)
      : command_(command), cluster_(platform, command.run.platform_edits), run_(command.run, cluster_) {
    run_.training.iterations = command.run.iterations;
  }

  TuneReport tune() {
    TuneReport report = described();
    Child step = simulate(run_, run_.training);
    const Bytes total = sum(run_.gradient_sizes);
    const std::vector<study::CostPoint> curve = costs_in_child(run_, study::sizes_up_to(total, curve_sizes));
    const Json base = Json::parse(step.result());
    if (run_.profile.has_value()) report.profile.emplace(*run_.profile, phases_of(base["phases"]));
    study::TuningInput input = input_from(base, curve, report);
    report.backward_end = input.problem.backward_end();
    report.tuning = study::tune(input, report.options);
    report.percentages =
        study::percentages_of(report.tuning.best.cuts, run_.gradient_sizes).value_or(std::vector<double>{});
    if (report.percentages.empty()) {
      report.notes.emplace_back("HCCL's percent rule makes no such cuts; use the indices");
    }
    add_mindspore(report, run_.workload);
    confirm(report);
    report.notes.insert(report.notes.end(), run_.notes.begin(), run_.notes.end());
    return report;
  }

 private:
  static Bytes sum(const std::vector<Bytes>& sizes) {
    Bytes total = 0;
    for (const Bytes size : sizes) total += size;
    return total;
  }

  [[nodiscard]] TuneReport described() const {
    TuneReport report;
    report.model = run_.model;
    report.platform = std::filesystem::path(run_.cluster.path()).filename().string();
    report.npu = run_.soc.name;
    report.npus = run_.npus;
    report.hcom_parallel = run_.training.hcom_parallel;
    report.gradients = static_cast<std::uint32_t>(run_.gradient_sizes.size());
    report.bytes = sum(run_.gradient_sizes);
    report.cost_model = study::parse_cost_model(command_.cost);
    report.options = {.most_segments = command_.most_segments,
                      .objective = study::parse_objective(command_.objective),
                      .streams = study::parse_streams(command_.streams),
                      .verify = !command_.verify.empty()};
    report.explain = command_.run.explain;
    return report;
  }

  study::TuningInput input_from(const Json& base, const std::vector<study::CostPoint>& curve, TuneReport& report) {
    auto ready = base["ready"].get<std::vector<Seconds>>();
    if (!report.hcom_parallel) {
      std::fill(ready.begin(), ready.end(), base["bp_end"].get<Seconds>());
      report.notes.emplace_back(
          "hcom_parallel is off: allreduces begin when the backward pass has ended and follow each other; one segment "
          "is "
          "best, since each further one costs alpha and hides nothing");
    }
    study::TuningInput input{.problem = study::SplitProblem(ready, run_.gradient_sizes),
                             .bytes = run_.gradient_sizes,
                             .forward = {},
                             .affine = {},
                             .minorants = {},
                             .cost = {},
                             .given = {}};
    input.forward = forward_times(input.problem, run_.workload);
    report.fit = study::fit_affine(curve);
    report.cost_points = curve.size();
    input.affine = report.fit.cost;
    input.is_affine = report.cost_model == study::CostModel::affine;
    if (input.is_affine) {
      input.cost = input.affine;
      input.minorants = {input.affine};
    } else if (report.cost_model == study::CostModel::table) {
      input.cost = study::interpolated(curve);
      input.minorants = study::affine_minorants(curve);
    } else {
      const std::vector<study::CostPoint> all = costs_in_child(run_, segment_sizes(input.problem));
      input.cost = looked_up(all);
      input.minorants = study::affine_minorants(all);
    }
    input.given.push_back({"as given", cuts_of(run_.training.segments)});
    return input;
  }

  /// Simulates every split that `run` can express, each once.
  void confirm(TuneReport& report) {
    std::map<study::Cuts, Child> children;
    const auto start = [&](const study::Cuts& cuts) {
      if (cuts.empty() || children.contains(cuts)) return;
      hccl::TrainingOptions training = run_.training;
      training.segments = segments_of(cuts);
      children.emplace(cuts, simulate(run_, std::move(training)));
    };
    for (const study::NamedSplit& split : report.tuning.strategies) start(split.cuts);
    for (const study::Split& split : report.tuning.by_segments) start(split.cuts);
    std::map<study::Cuts, ConfirmedSplit> confirmed;
    for (auto& [cuts, child] : children) {
      const Json result = Json::parse(child.result());
      confirmed[cuts] = {result["finish"].get<Seconds>(), result["step"].get<Seconds>()};
    }
    const auto find = [&](const study::Cuts& cuts) {
      const auto found = confirmed.find(cuts);
      return found == confirmed.end() ? std::nullopt : std::optional(found->second);
    };
    for (const study::NamedSplit& split : report.tuning.strategies) report.strategies.push_back(find(split.cuts));
    for (const study::Split& split : report.tuning.by_segments) report.by_segments.push_back(find(split.cuts));
  }

  const TuneCommand& command_;
  sim::Cluster cluster_;
  LoadedRun run_;
};

void check_command(const TuneCommand& command) {
  if (command.run.format == OutputFormat::csv) bad_input("option", "--format csv: tune prints text or json");
  if (command.run.numerics.enabled)
    bad_input("option", "--numerics: tune computes no gradients; give it to `hcclsim run`");
  if (!command.verify.empty() && command.cost == "simulated") {
    bad_input("option", "--verify brute needs the cost of any segment; give --cost affine or table");
  }
}

}  // namespace

void add_tune_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("tune", "The best gradient split, with its proof");
  command->footer(
      "Examples:\n"
      "  hcclsim tune                                     ResNet50 on eight 910A\n"
      "  hcclsim tune --gradients profile.csv --cost table a measured profile\n"
      "  hcclsim tune --platform atlas800t-a2-x2 --format json");
  set_up_tune(command, nullptr);
}

void set_up_tune(CLI::App* const command, const std::shared_ptr<const HtmlReport>& html) {
  const auto options = std::make_shared<TuneCommand>();
  add_run_options(*command, options->run);
  const char* const group = "Tuning";
  command->add_option("--max-segments", options->most_segments, "Most segments that a split may have; HCCL takes 8")
      ->check(whole_number(1, 1024))
      ->capture_default_str()
      ->group(group);
  command->add_option("--cost", options->cost, "Cost of an allreduce: fitted line, simulated sizes, every segment")
      ->check(one_of({"affine", "table", "simulated"}))
      ->capture_default_str()
      ->group(group);
  command->add_option("--objective", options->objective, "Of equal ends any split, or that with the fewest segments")
      ->check(one_of({"time", "time,segments"}))
      ->capture_default_str()
      ->group(group);
  command->add_option("--streams", options->streams, "Communication streams, and whether they share their links")
      ->check(one_of({"1", "2-shared", "2-disjoint"}))
      ->capture_default_str()
      ->group(group);
  command->add_option("--verify", options->verify, "brute: try all splits, of up to 24 gradients")
      ->check(one_of({"brute"}))
      ->group(group);
  command->callback([command, options, html] {
    finish_run_options(*command, options->run);
    if (command->get_option("--hcom-parallel")->count() == 0) options->run.hcom_parallel = true;
    check_command(*options);
    const std::string platform = find_platform(options->run.platform);
    static_cast<void>(run_in_child([&] {
      std::optional<OutputFile> page;
      if (html != nullptr) page.emplace(html->path);
      const TuneReport report = Tuner(*options, platform).tune();
      if (page.has_value()) page->write(tune_page(report, *html));
      print(options->run.format == OutputFormat::json ? tune_json(report) : tune_text(report));
      if (page.has_value()) page->commit();
      return std::string();
    }));
  });
}

}  // namespace hcclsim::cli
