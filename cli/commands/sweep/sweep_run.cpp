#include "cli/commands/sweep/sweep_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/suggest.hpp"
#include "cli/commands/sweep/point_command.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "study/compare/sweep/ranking.hpp"

namespace hcclsim::cli {
namespace {

struct SweepRunCommand {
  GridArguments grid;
  study::SweepSpec spec;
  std::string format = "text";
};

/// The best point of each group in which there is a choice.
std::string best_lines(const study::SweepReport& report) {
  constexpr std::size_t most_groups = 5;
  std::vector<study::RankedGroup> groups = study::ranked(report.points, {});
  if (groups.size() > 1) std::erase_if(groups, [](const study::RankedGroup& group) { return group.points == 1; });
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), most_groups); ++i) {
    const study::StoredPoint& best = *groups[i].best;
    const std::string_view column = study::default_criterion(best.command).column;
    text += fmt::format("Best {} {:.6g}: {}\n", column, *best.figure(column),
                        study::name_of_point(best.inputs, report.axes));
  }
  if (groups.size() > most_groups)
    text += fmt::format("  and {} more: hcclsim sweep best\n", groups.size() - most_groups);
  return text;
}

/// The first errors.
std::string failures(const study::SweepReport& report) {
  constexpr std::size_t most = 5;
  std::string text = "Failed:\n";
  std::size_t failed = 0;
  for (const study::StoredPoint& point : report.points) {
    if (point.status != study::PointStatus::failed || ++failed > most) continue;
    text += fmt::format("  {}: {}\n", study::name_of_point(point.inputs, report.axes), point.error);
  }
  if (failed > most) text += fmt::format("  and {} more: hcclsim sweep show\n", failed - most);
  return text;
}

std::string report_text(const study::SweepReport& report) {
  return fmt::format("Points {}: {} done, {} failed, {} left; {} computed now\n", report.points.size(), report.done,
                     report.failed, report.left(), report.computed) +
         (report.failed > 0 ? failures(report) : "") + best_lines(report) + unmodelled_line(report.unmodelled);
}

std::string report_json(const study::SweepReport& report) {
  Json ids = Json::array();
  for (const study::StoredPoint& point : report.points) ids.push_back(point.id);
  const Json json = {{"format_version", 1},   {"done", report.done},         {"failed", report.failed},
                     {"left", report.left()}, {"computed", report.computed}, {"ids", ids}};
  return json.dump(2) + '\n';
}

/// Throws Error(check_failed) if some points have failed or are left.
void require_all_done(const study::SweepReport& report) {
  const auto require_none = [&](std::size_t count, const char* what) {
    if (count == 0) return;
    throw Error(ErrorCode::check_failed, "sweep", fmt::format("{} of {} points {}", count, report.points.size(), what));
  };
  require_none(report.failed, "failed; --retry-failed computes them anew");
  require_none(report.left(), "are left; the same command goes on");
}

void run(SweepRunCommand command) {
  const std::vector<study::Point> points = command.grid.points();
  command.spec.database = command.grid.database;
  Progress progress;
  const Interruption interruption;
  progress.start();
  const study::SweepReport report = study::run_sweep(
      command.spec, points, group_loader(interruption), [&] { return interruption.signal() != 0; },
      [&](const study::Tally& so_far) {
        progress.update([&](double seconds) {
          return fmt::format("point {}/{}{}", so_far.finished(), so_far.points,
                             rate_text(so_far.computed, so_far.points - so_far.before, seconds, "points"));
        });
      });
  progress.erase();
  try {
    print(command.format == "json" ? report_json(report) : report_text(report));
    require_all_done(report);
  } catch (const Error&) {
    if (interruption.signal() == 0) throw;  // what is left then is no surprise
  }
  if (interruption.signal() != 0) throw Interrupted(interruption.signal());
}

}  // namespace

std::vector<study::Point> GridArguments::points() const {
  // An option that this command does not know ends what it takes; the words behind it are then no command.
  const std::vector<std::string> rest = parsed->rest();
  const bool is_command = std::find(swept_commands.begin(), swept_commands.end(), command) != swept_commands.end();
  if (!is_command && !rest.empty() && rest.front().starts_with('-')) {
    const std::string name = rest.front().substr(0, rest.front().find('='));
    bad_input("option", "unknown option {}{}", name, did_you_mean(name, parsed->option_names()));
  }
  return study::points_of(read_grid(command, rest, config));
}

void print_report(const study::SweepReport& report) {
  print(report_text(report));
  require_all_done(report);
}

void add_grid_arguments(Command& command, GridArguments& arguments) {
  arguments.parsed = &command;
  command.add("DATABASE", read_file(arguments.database), "SQLite file of the results").required();
  command.add("COMMAND", text(arguments.command), "run, collective or job, then its options with several values each")
      .value_name("COMMAND OPTION…");
  command.add("--config", read_file(arguments.config),
              "TOML file of these options, in a section [run], [collective] or [job]");
  command.keep_rest();
}

void add_sweep_run_command(Command& sweep) {
  const auto options = std::make_shared<SweepRunCommand>();
  Command& command = sweep.add_command("run", "Compute the points of a grid that the database has not yet");
  add_grid_arguments(command, options->grid);
  command
      .add("-j,--jobs", whole_number(options->spec.jobs, 1, 4096),
           "Points that are computed at a time [one per processor]")
      .value_name("UINT");
  command
      .add("--shard", parsed(study::parse_shard, options->spec.shard),
           "Part I of N of the points, for N machines with a database each")
      .value_name("I/N");
  command.add("--not-in", read_file(options->spec.not_in),
              "Leave out points that are finished in this database, which is only read");
  command.add("--retry-failed", flag(options->spec.retry_failed), "Compute failed points anew");
  command
      .add("--format", one_of({"text", "json"}, options->format),
           "What is printed; json: counts, and the ids of the grid's points")
      .with_default();
  command.add("--shared", flag(options->spec.shared),
              "Other machines open this database, too; so it is where the file system is not known to be local");
  command.footer(
      "Values: 16,32,64; of options that take lists 80,20;60,40; ranges FIRST:LAST:STEP or FIRST:LAST:xFACTOR, such "
      "as\n"
      "50:99:1 or 10GBps:40GBps:5GBps. A split by size is filled up to 100 %. --platform takes patterns. The options "
      "of\n"
      "the sweep itself come first. The same command goes on where an interrupted one ended; exit status 1: points "
      "failed.\n"
      "Examples:\n"
      "  hcclsim sweep run splits.db run --hcom-parallel on --split-by-size 50:99:1\n"
      "  hcclsim sweep run links.db run --model resnet50,vgg16 --set 'link[hccs*].bandwidth=10GBps:40GBps:5GBps'\n"
      "  hcclsim sweep run sizes.db collective allreduce,allgather --size 1K,1M,1G --platform 'atlas*'\n"
      "  hcclsim sweep run jobs.db job job.yaml --checkpoint-every 10,100\n"
      "  hcclsim sweep run -j 8 --shard 2/8 part2.db --config grid.toml");
  command.on_run([options] { run(*options); });
}

}  // namespace hcclsim::cli
