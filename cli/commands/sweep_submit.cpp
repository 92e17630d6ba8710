#include "cli/commands/sweep_submit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/commands/sweep_run.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/output.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/progress.hpp"
#include "study/sweep/slurm.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;
using study::SweepStore;

constexpr std::chrono::milliseconds poll_interval{1000};
/// How long squeue may fail while a job is followed: a controller that is started anew does not answer for a while.
constexpr std::chrono::minutes patience{10};

struct SubmitCommand {
  GridArguments grid;
  study::SlurmOptions slurm{.tasks = 4, .cpus_per_task = 1, .partition = {}, .time = {}, .others = {}};
  bool retry_failed = false;
  bool detach = false;
};

std::string script_of(const SubmitCommand& command) {
  const std::string hcclsim = fs::read_symlink("/proc/self/exe").string();
  std::string sweep_run = shell_word(hcclsim) + " sweep run";
  if (!command.grid.config.empty()) {
    sweep_run += " --config " + shell_word(fs::absolute(command.grid.config).string());
  }
  sweep_run += command.retry_failed ? " --shared --retry-failed" : " --shared";
  sweep_run += " --not-in " + shell_word(fs::absolute(command.grid.database).string());
  std::string grid = shell_word(command.grid.command);
  if (command.grid.command.empty()) grid.clear();
  for (const std::string& word : command.grid.parsed->rest()) grid += ' ' + shell_word(word);
  return study::slurm_script(command.grid.database, command.slurm, sweep_run, grid);
}

/// Follows a job until all its tasks have ended, or Ctrl-C, which leaves the job alone. Returns how they ended.
study::SlurmTasks follow(const study::SlurmJob& job, const std::string& database, const Interruption& interruption) {
  using Clock = std::chrono::steady_clock;
  Progress progress;
  progress.start();
  Clock::time_point answered = Clock::now();
  while (interruption.signal() == 0) {
    std::string line;
    try {
      study::SlurmTasks tasks = study::slurm_tasks(job);
      if (tasks.ended == job.tasks) return tasks;
      line = to_string(tasks);
      answered = Clock::now();
    } catch (const Error& error) {
      if (Clock::now() - answered > patience) {
        bad_input("slurm", "job {} cannot be followed, but goes on; hcclsim sweep status {}: {}", job.id, database,
                  error.what());
      }
      line = error.what();
    }
    progress.update([&](double) { return fmt::format("job {}: {}", job.id, line); });
    std::this_thread::sleep_for(poll_interval);
  }
  return {};
}

/// Takes what the tasks of all jobs have finished; returns the databases of which it was taken. One that cannot be read
/// is told of and does not stop the others.
std::vector<std::string> merge_shards(SweepStore& store, const std::string& database) {
  std::vector<std::string> merged;
  for (const std::string& shard : study::shard_databases(database)) {
    try {
      store.merge(shard);
      merged.push_back(shard);
    } catch (const Error& error) {
      print(fmt::format("Not taken: {}\n", error.what()));
    }
  }
  return merged;
}

void remove_databases(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code ignored;  // a file that stays is merged again
    for (const char* const suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(file + suffix, ignored);
  }
}

/// Tasks of two jobs would compute the same points.
void require_no_job(const std::string& database) {
  const study::SlurmJob job = study::slurm_job(database);
  if (job.id.empty()) return;
  const study::SlurmTasks tasks = study::slurm_tasks(job);
  if (tasks.ended == job.tasks) return;
  bad_input("slurm", "job {} of this sweep has not ended: {}; wait for it (hcclsim sweep status {}) or scancel {}",
            job.id, to_string(tasks), database, job.id);
}

/// Counts of the points of a grid.
study::PointCounts counts_of(SweepStore& store, const std::vector<study::Point>& points) {
  study::PointCounts counts;
  std::vector<std::string> ids;
  for (const study::Point& point : points) ids.push_back(point.id);
  for (const study::PointStatus status : store.statuses(ids)) ++counts.of(status);
  return counts;
}

/// Brings the database to what is known and prepares it for a job; returns the counts of the grid's points. It is
/// closed again, since other machines read the file as long as the job runs.
study::PointCounts prepare(const SubmitCommand& command, const std::vector<study::Point>& points) {
  const std::string& database = command.grid.database;
  require_no_job(database);
  SweepStore store(database, SweepStore::Access::share);
  store.add(points);
  remove_databases(merge_shards(store, database));
  if (command.retry_failed) {
    std::vector<std::string> ids;
    for (const study::Point& point : points) ids.push_back(point.id);
    store.retry(ids);
  }
  return counts_of(store, points);
}

void submit(SubmitCommand command) {
  const std::vector<study::Point> points = command.grid.points();
  const std::string& database = command.grid.database;
  const study::PointCounts before = prepare(command, points);
  const std::uint64_t left = before.waiting + before.running;
  if (left == 0) {
    SweepStore store(database, SweepStore::Access::read);
    print("Nothing is left to submit\n");
    report_points(store, points, 0);
    return;
  }
  command.slurm.tasks = static_cast<std::uint32_t>(std::min<std::uint64_t>(command.slurm.tasks, left));
  const study::SlurmJob job = study::submit_to_slurm(database, script_of(command), command.slurm.tasks);
  print(fmt::format("Submitted job {}: {} points in {} tasks\n", job.id, left, job.tasks));
  if (command.detach) return;
  const Interruption interruption;
  const study::SlurmTasks tasks = follow(job, database, interruption);
  if (interruption.signal() != 0) {
    print(fmt::format("Job {} goes on; hcclsim sweep status {}\n", job.id, database));
    throw Interrupted(interruption.signal());
  }
  if (!tasks.not_completed.empty()) {
    print(fmt::format("Job {}: {}; logs in {}\n", job.id, to_string(tasks), study::slurm_folder(database)));
  }
  SweepStore store(database, SweepStore::Access::share);
  merge_shards(store, database);
  const study::PointCounts after = counts_of(store, points);
  report_points(store, points, after.done + after.failed - before.done - before.failed);
}

std::string counts_text(const study::PointCounts& counts) {
  return fmt::format("{} points: {} done, {} failed, {} running, {} waiting", counts.all(), counts.done, counts.failed,
                     counts.running, counts.waiting);
}

/// What Slurm says of a job; it may be asked when Slurm does not answer, too.
std::string job_text(const study::SlurmJob& job) {
  try {
    return to_string(study::slurm_tasks(job));
  } catch (const Error& error) {
    return fmt::format("{} tasks of which nothing is known: {}", job.tasks, error.what());
  }
}

std::string shard_text(const std::string& shard) {
  try {
    SweepStore store(shard, SweepStore::Access::read);
    return fmt::format("{}: {}", fs::path(shard).filename().string(), counts_text(store.counts()));
  } catch (const Error& error) {
    return error.what();
  }
}

void status(const std::string& database) {
  static_cast<void>(SweepStore(database, SweepStore::Access::read));  // refuses what is no sweep database
  const study::SlurmJob job = study::slurm_job(database);
  if (!job.id.empty()) print(fmt::format("Job {}: {}\n", job.id, job_text(job)));
  const std::vector<std::string> shards = study::shard_databases(database);
  for (const std::string& shard : shards) print(fmt::format("  {}\n", shard_text(shard)));
  if (!shards.empty()) {
    SweepStore store(database, SweepStore::Access::share);
    merge_shards(store, database);
  }
  SweepStore store(database, SweepStore::Access::read);
  print(fmt::format("{}: {}\n", database, counts_text(store.counts())));
}

}  // namespace

void add_sweep_submit_commands(Command& sweep) {
  const auto options = std::make_shared<SubmitCommand>();
  Command& submitted = sweep.add_command("submit", "Compute a grid as a job array of Slurm");
  add_grid_arguments(submitted, options->grid);
  submitted
      .add("--tasks", whole_number(options->slurm.tasks, 1, study::most_tasks),
           "Tasks of the array, each with a part of the points")
      .value_name("UINT")
      .with_default();
  submitted
      .add("--cpus-per-task", whole_number(options->slurm.cpus_per_task, 1, 4096),
           "Points that a task computes at a time")
      .value_name("UINT")
      .with_default();
  submitted.add("--partition", text(options->slurm.partition), "Slurm's partition [its default]");
  submitted.add("--time", text(options->slurm.time), "Slurm's time limit of a task [its default]");
  submitted.add("--sbatch", texts(options->slurm.others), "A further option of sbatch, such as --sbatch=--mem=4G")
      .value_name("OPTION");
  submitted.add("--retry-failed", flag(options->retry_failed), "Compute failed points anew");
  submitted.add("--detach", flag(options->detach), "Do not wait; `hcclsim sweep status` follows and merges");
  submitted.footer(
      "The database and its folder must be on a file system that all nodes share. Ctrl-C leaves the job alone.\n"
      "Examples:\n"
      "  hcclsim sweep submit --tasks 16 --cpus-per-task 8 big.db run --model resnet50,vgg16 --split-by-size 50:99:1");
  submitted.on_run([options] { submit(*options); });

  const auto database = std::make_shared<std::string>();
  Command& followed = sweep.add_command("status", "How far a sweep is; takes what the tasks of a job have finished");
  followed.add("DATABASE", read_file(*database), "File of `hcclsim sweep run` or `submit`").required();
  followed.on_run([database] { status(*database); });
}

}  // namespace hcclsim::cli
