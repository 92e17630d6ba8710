#include "cli/commands/sweep_run.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/point_command.hpp"
#include "cli/print/output.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/progress.hpp"
#include "study/sweep/ranking.hpp"
#include "study/sweep/runner.hpp"
#include "study/sweep/slurm.hpp"

namespace hcclsim::cli {
namespace {

struct SweepRunCommand {
  GridArguments grid;
  std::uint32_t jobs = 0;
  std::string shard;
  bool retry_failed = false;
  bool shared = false;
  std::string not_in;
};

/// Processors that this process may use.
std::uint32_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&set)) : 1;
}

std::vector<std::string> ids_of(const std::vector<study::Point>& points) {
  std::vector<std::string> ids;
  for (const study::Point& point : points) ids.push_back(point.id);
  return ids;
}

/// What is stored of the points of the grid.
std::vector<study::StoredPoint> stored(study::SweepStore& store, const std::vector<study::Point>& points) {
  const std::vector<std::string> ids = ids_of(points);
  const std::set<std::string> wanted(ids.begin(), ids.end());
  std::vector<study::StoredPoint> found = store.points();
  std::erase_if(found, [&](const study::StoredPoint& point) { return !wanted.contains(point.id); });
  return found;
}

/// The best point of each group in which there is a choice.
std::string best_lines(const std::vector<study::StoredPoint>& points, const std::vector<std::string>& axes) {
  constexpr std::size_t most_groups = 5;
  std::vector<study::RankedGroup> groups = study::ranked(points, {});
  if (groups.size() > 1) std::erase_if(groups, [](const study::RankedGroup& group) { return group.points == 1; });
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), most_groups); ++i) {
    const study::StoredPoint& best = *groups[i].best;
    const std::string_view column = study::default_criterion(best.command).column;
    text += fmt::format("Best {} {:.6g}: {}\n", column, *best.figure(column), name_of_point(best.inputs, axes));
  }
  if (groups.size() > most_groups)
    text += fmt::format("  and {} more: hcclsim sweep best\n", groups.size() - most_groups);
  return text;
}

std::size_t count_of(const std::vector<study::StoredPoint>& points, study::PointStatus status) {
  const auto has_it = [&](const study::StoredPoint& point) { return point.status == status; };
  return static_cast<std::size_t>(std::count_if(points.begin(), points.end(), has_it));
}

/// The first errors.
std::string failures(const std::vector<study::StoredPoint>& points, const std::vector<std::string>& axes) {
  constexpr std::size_t most = 5;
  std::string text = "Failed:\n";
  std::size_t failed = 0;
  for (const study::StoredPoint& point : points) {
    if (point.status != study::PointStatus::failed || ++failed > most) continue;
    text += fmt::format("  {}: {}\n", name_of_point(point.inputs, axes), point.error);
  }
  if (failed > most) text += fmt::format("  and {} more: hcclsim sweep show\n", failed - most);
  return text;
}

/// Settings of HCCL that had no effect on some of the points.
std::vector<std::string> unmodelled(study::SweepStore& store, const std::vector<study::StoredPoint>& points) {
  constexpr const char* key = "not_modelled";
  std::set<std::string> wanted;
  for (const study::StoredPoint& point : points) wanted.insert(point.id);
  std::set<std::string> origins;
  const auto look_at = [&](const study::StoredPoint& point) {
    if (!wanted.contains(point.id) || point.result.find(key) == std::string::npos) return;
    const Json result = Json::parse(point.result);
    for (const Json& origin : result.value(key, Json::array())) origins.insert(origin.get<std::string>());
  };
  store.for_each(look_at, true);
  return {origins.begin(), origins.end()};
}

/// Leaves out the points that need not be computed, by what another database says of them.
void leave_out_finished(std::vector<study::Point>& points, const std::string& database, bool retry_failed) {
  study::SweepStore store(database, study::SweepStore::Access::read);
  std::set<std::string> finished;
  for (const study::StoredPoint& point : store.points()) {
    const bool failed = point.status == study::PointStatus::failed;
    if (point.status == study::PointStatus::done || (failed && !retry_failed)) finished.insert(point.id);
  }
  std::erase_if(points, [&](const study::Point& point) { return finished.contains(point.id); });
}

/// Which file has a name; 0 if there is none.
ino_t file_number(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

void run(const SweepRunCommand& command) {
  std::vector<study::Point> points = command.grid.points();
  if (!command.shard.empty()) {
    const study::Shard shard = study::parse_shard(command.shard);
    std::erase_if(points, [&](const study::Point& point) { return !study::belongs(point.id, shard); });
  }
  if (!command.not_in.empty()) leave_out_finished(points, command.not_in, command.retry_failed);
  study::SweepStore store(command.grid.database, access_to(command.grid.database, command.shared));
  const ino_t file = file_number(command.grid.database);
  store.add(points);
  if (command.retry_failed) store.retry(ids_of(points));
  Progress progress;
  const Interruption interruption;
  progress.start();
  const study::Tally tally = study::run_points(
      store, points, group_loader(interruption),
      {.jobs = command.jobs == 0 ? processors() : command.jobs,
       .stop = [&] { return interruption.signal() != 0; },
       .progress =
           [&](const study::Tally& so_far) {
             progress.update([&](double seconds) {
               return fmt::format("point {}/{}{}", so_far.finished(), so_far.points,
                                  rate_text(so_far.computed, so_far.points - so_far.before, seconds, "points"));
             });
           }});
  progress.erase();
  if (file_number(command.grid.database) != file) {
    bad_input("database", "{}: was removed or replaced while the sweep ran; what it computed is lost",
              command.grid.database);
  }
  try {
    report_points(store, points, tally.computed);
  } catch (const Error&) {
    if (interruption.signal() == 0) throw;  // what is left then is no surprise
  }
  if (interruption.signal() != 0) throw Interrupted(interruption.signal());
}

}  // namespace

std::vector<study::Point> GridArguments::points() const {
  return points_of(read_grid(command, parsed->rest(), config));
}

study::SweepStore::Access access_to(const std::string& database, bool shared) {
  return shared || std::filesystem::exists(study::slurm_folder(database)) ? study::SweepStore::Access::share
                                                                          : study::SweepStore::Access::work;
}

void report_points(study::SweepStore& store, const std::vector<study::Point>& points, std::uint64_t computed) {
  const std::vector<study::StoredPoint> results = stored(store, points);
  const std::vector<std::string> axes = axes_of(results);
  const std::size_t done = count_of(results, study::PointStatus::done);
  const std::size_t failed = count_of(results, study::PointStatus::failed);
  const std::size_t left = results.size() - done - failed;
  print(fmt::format("Points {}: {} done, {} failed, {} left; {} computed now\n", results.size(), done, failed, left,
                    computed) +
        (failed > 0 ? failures(results, axes) : "") + best_lines(results, axes) +
        unmodelled_line(unmodelled(store, results)));
  if (failed > 0) {
    throw Error(ErrorCode::check_failed, "sweep",
                fmt::format("{} of {} points failed; --retry-failed computes them anew", failed, results.size()));
  }
  if (left > 0) {
    throw Error(ErrorCode::check_failed, "sweep",
                fmt::format("{} of {} points are left; the same command goes on", left, results.size()));
  }
}

void add_grid_arguments(Command& command, GridArguments& arguments) {
  arguments.parsed = &command;
  command.add("DATABASE", read_file(arguments.database), "SQLite file of the results").required();
  command.add("COMMAND", text(arguments.command), "run or collective, then its options with several values each")
      .value_name("COMMAND OPTION…");
  command.add("--config", read_file(arguments.config),
              "TOML file of these options, in a section [run] or [collective]");
  command.keep_rest();
}

void add_sweep_run_command(Command& sweep) {
  const auto options = std::make_shared<SweepRunCommand>();
  Command& command = sweep.add_command("run", "Compute the points of a grid that the database has not yet");
  add_grid_arguments(command, options->grid);
  command
      .add("-j,--jobs", whole_number(options->jobs, 1, 4096), "Points that are computed at a time [one per processor]")
      .value_name("UINT");
  command
      .add("--shard", parsed(study::parse_shard, options->shard),
           "Part I of N of the points, for N machines with a database each")
      .value_name("I/N");
  command.add("--not-in", read_file(options->not_in),
              "Leave out points that are finished in this database, which is only read");
  command.add("--retry-failed", flag(options->retry_failed), "Compute failed points anew");
  command.add("--shared", flag(options->shared),
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
      "  hcclsim sweep run -j 8 --shard 2/8 part2.db --config grid.toml");
  command.on_run([options] { run(*options); });
}

std::string name_of_point(const Json& inputs, const std::vector<std::string>& axes) {
  std::string name;
  for (const std::string& axis : axes) {
    if (!inputs.contains(axis)) continue;
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", axis, inputs[axis].get<std::string>());
  }
  return name.empty() ? "the only point" : name;
}

std::vector<std::string> axes_of(const std::vector<study::StoredPoint>& points) {
  std::vector<const Json*> inputs;
  for (const study::StoredPoint& point : points) inputs.push_back(&point.inputs);
  return study::varying_axes(inputs);
}

}  // namespace hcclsim::cli
