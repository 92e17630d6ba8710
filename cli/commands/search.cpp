#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/sweep/point_command.hpp"
#include "cli/commands/sweep/sweep_grid.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/search_options.hpp"
#include "cli/print/plan/plan_search_report.hpp"
#include "cli/print/plan/strategy_search_report.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "models/zoo/zoo.hpp"
#include "study/compare/plans/planned_network.hpp"
#include "study/compare/sweep/sweep.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

/// A database that is gone when the search ends.
class TemporaryDatabase {
 public:
  TemporaryDatabase() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hcclsim-search-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      bad_input("output", "{}: no folder for the database of the search can be made there; give --database FILE",
                pattern);
    }
    folder_ = pattern;
  }
  TemporaryDatabase(const TemporaryDatabase&) = delete;
  TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;
  ~TemporaryDatabase() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string path() const { return folder_ + "/search.db"; }

 private:
  std::string folder_;
};

/// The runs of a space, and those of them whose gradients may be split in another way.
struct PlannedRuns {
  std::vector<study::Point> runs;
  std::set<std::string> splittable;
};

PlannedRuns runs_of(const Command& command, const RunOptions& run, const study::PlanSpace& space,
                    const study::PlannedNetwork& network, study::PointNamer& namer) {
  Json common = common_inputs(command);
  if (!common.contains("iterations")) common["iterations"] = "1";
  PlannedRuns planned;
  for (const study::PlanOptions& plan : study::plans_of(space, network)) {
    planned.runs.push_back(namer.named(inputs_of(common, plan)));
    if (is_splittable(command, run, plan)) planned.splittable.insert(planned.runs.back().id);
  }
  return planned;
}

void search_plans(Command& command, SearchOptions& options) {
  finish_search_options(command, options);
  study::RunSpec& spec = options.run.spec;
  spec.platform.file = options.run.platform;
  const study::PlannedNpus where = study::planned_npus(spec);
  models::ModelOptions sizes = spec.model;
  sizes.batch = 1;
  const models::Graph graph = models::make_model(sizes);
  PlanSearchReport report{.model = graph.title,
                          .platform = std::filesystem::path(study::find_platform(options.run.platform)).filename(),
                          .space = plan_space(command, options.run, where),
                          .by_bound = options.by_bound};
  if (options.run.launch_file.is_given()) {
    report.launch_file = launch_file_inputs(command);
    report.of_file = file_inputs(command);
  }
  if (spec.step.compression.has_value() && spec.step.compression->settings.start > 0) {
    report.notes.push_back(
        fmt::format("a step is one in which the hook of --compress has started; the first {} steps of a training are "
                    "without it, as run has them",
                    with_thousands(spec.step.compression->settings.start)));
  }
  study::PointNamer namer(sweep_of("run"));
  const PlannedRuns planned = runs_of(command, options.run, report.space, study::planned_network(graph), namer);
  std::optional<TemporaryDatabase> temporary;
  if (options.database.empty()) options.database = temporary.emplace().path();
  Progress progress;
  const Interruption interruption;
  const auto begin = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    const std::chrono::duration<double, std::ratio<60>> minutes = std::chrono::steady_clock::now() - begin;
    return options.minutes > 0 && minutes.count() > options.minutes;
  };
  progress.start();
  study::SweepStore store(options.database, study::access_to(options.database, false));
  report.result =
      study::search_plans(store, planned.runs, group_loader(interruption),
                          {.runner = {.jobs = options.jobs == 0 ? study::processors() : options.jobs,
                                      .stop = [&] { return interruption.signal() != 0 || is_over(); },
                                      .progress = {}},
                           .by_bound = options.by_bound,
                           .by_promise = options.minutes > 0,
                           .least = options.least,
                           .splittable = planned.splittable,
                           .with_split =
                               [&](const study::Point& run, const std::string& last) {
                                 Json inputs = run.inputs;
                                 inputs["split-by-idx"] = last;
                                 return namer.named(std::move(inputs));
                               },
                           .progress =
                               [&](std::string_view stage, std::uint64_t done, std::uint64_t all) {
                                 progress.update([&](double) { return fmt::format("{} {}/{}", stage, done, all); });
                               }});
  progress.erase();
  print(options.run.format == OutputFormat::json  ? plan_search_json(report)
        : options.run.format == OutputFormat::csv ? plan_search_csv(report)
                                                  : plan_search_text(report, options.shown));
  if (interruption.signal() != 0) throw Interrupted(interruption.signal());
  if (report.result.front.empty() && is_over()) {
    throw Error(ErrorCode::check_failed, "search",
                "the time was over before a plan was simulated; give a longer --time-limit");
  }
  if (report.result.front.empty()) {
    throw Error(ErrorCode::check_failed, "search", "no plan fits and could be simulated; --format csv says why");
  }
}

/// How the operators of the network are cut.
void search_strategies(Command& command, SearchOptions& options) {
  finish_search_options(command, options);
  if (options.run.format == OutputFormat::csv) {
    bad_input("option", "--format csv is of --mode plan: strategies are printed as text or JSON");
  }
  study::StrategySearchSpec& spec = options.strategies;
  spec.run = options.run.spec;
  spec.run.platform.file = options.run.platform;
  Progress progress;
  progress.start();
  const study::StrategySearchResult result =
      study::search_strategies(spec, [&](const std::string& what) { progress.update([&](double) { return what; }); });
  progress.erase();
  const std::string run = spec.save.empty() ? std::string() : run_with(command, spec.save);
  print(options.run.format == OutputFormat::json ? strategy_search_json(result, run)
                                                 : strategy_search_text(result, run));
}

}  // namespace

void add_search_command(Command& app) {
  app.add_command("search", "The best way to spread a step over NPUs", [](Command& command) {
    const auto options = std::make_shared<SearchOptions>();
    add_search_options(command, *options);
    command.footer(
        "What options of run say is fixed, the rest is searched: data, model and pipeline parallelism, the size of\n"
        "micro-batches, recomputing, what replicas share. Exit status 1: no plan fits.\n"
        "Examples:\n"
        "  hcclsim search --model gpt2-small --platform atlas800t-a2 --global-batch 32 --stages 1\n"
        "  hcclsim search --model llama2-7b --layers 4 --platform atlas800t-a2 --model-parallel 8 --recompute full\n"
        "  hcclsim search --model gpt2-small --npus 2 --stages 1 --database plans.db   goes on where it was stopped\n"
        "  hcclsim search --model gpt2-small --npus 2 --stages 1 --format csv   every plan, and why it was "
        "rejected\n"
        "  hcclsim search --model gpt2-small --platform atlas800t-a2 --mode dynamic_programming   how operators are "
        "cut\n"
        "  hcclsim search --model resnet50 --mode recursive_programming --save cuts.json");
    command.on_run([&command, options] {
      if (options->mode == "plan") {
        search_plans(command, *options);
      } else {
        search_strategies(command, *options);
      }
    });
  });
}

}  // namespace hcclsim::cli
