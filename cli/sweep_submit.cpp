#include "cli/sweep_submit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/interruption.hpp"
#include "cli/option_checks.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/sweep_run.hpp"
#include "study/sweep/slurm.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;
using study::SweepStore;

constexpr std::chrono::milliseconds poll_interval{1000};

struct SubmitCommand {
  GridArguments grid;
  study::SlurmOptions slurm{.tasks = 4, .cpus_per_task = 1, .partition = {}, .time = {}, .others = {}};
  bool detach = false;
};

std::string script_of(const SubmitCommand& command) {
  const std::string hcclsim = fs::read_symlink("/proc/self/exe").string();
  std::string sweep_run = shell_word(hcclsim) + " sweep run";
  if (!command.grid.config.empty()) {
    sweep_run += " --config " + shell_word(fs::absolute(command.grid.config).string());
  }
  sweep_run += " --not-in " + shell_word(fs::absolute(command.grid.database).string());
  std::string grid = shell_word(command.grid.command);
  if (command.grid.command.empty()) grid.clear();
  for (const std::string& word : command.grid.parsed->remaining()) grid += ' ' + shell_word(word);
  return study::slurm_script(command.grid.database, command.slurm, sweep_run, grid);
}

/// Follows a job until all its tasks have ended, or Ctrl-C, which leaves the job alone.
void follow(const study::SlurmJob& job, const Interruption& interruption) {
  Progress progress;
  progress.start();
  while (interruption.signal() == 0) {
    const study::SlurmTasks tasks = study::slurm_tasks(job);
    if (tasks.ended == job.tasks) return;
    progress.update([&](double) {
      return fmt::format("job {}: {} of {} tasks ended, {} running, {} pending", job.id, tasks.ended, job.tasks,
                         tasks.running, tasks.pending);
    });
    std::this_thread::sleep_for(poll_interval);
  }
}

/// Takes what the shards have finished; those that have not begun have no file.
void merge_shards(SweepStore& store, const std::string& database, std::uint32_t shards) {
  for (std::uint32_t shard = 1; shard <= shards; ++shard) {
    const std::string file = study::shard_database(database, shard);
    if (fs::exists(file)) store.merge(file);
  }
}

/// Returns how many are done. The store is closed again, since other machines read the file as long as the job runs.
std::uint64_t add_points(const std::string& database, const std::vector<study::Point>& points) {
  SweepStore store(database, SweepStore::Access::work);
  store.add(points);
  return store.counts().done;
}

void submit(const SubmitCommand& command) {
  const std::vector<study::Point> points = command.grid.points();
  const std::string& database = command.grid.database;
  const std::uint64_t before = add_points(database, points);
  const study::SlurmJob job = study::submit_to_slurm(database, script_of(command), command.slurm.tasks);
  print(fmt::format("Submitted job {}: {} points in {} tasks\n", job.id, points.size(), job.tasks));
  if (command.detach) return;
  const Interruption interruption;
  follow(job, interruption);
  if (interruption.signal() != 0) {
    print(fmt::format("Job {} goes on; hcclsim sweep status {}\n", job.id, database));
    throw Interrupted(interruption.signal());
  }
  SweepStore store(database, SweepStore::Access::work);
  merge_shards(store, database, job.tasks);
  report_points(store, points, store.counts().done - before);
}

std::string counts_text(const study::PointCounts& counts) {
  return fmt::format("{} points: {} done, {} failed, {} running, {} waiting", counts.all(), counts.done, counts.failed,
                     counts.running, counts.waiting);
}

void status(const std::string& database) {
  const study::SlurmJob job = study::slurm_job(database);
  if (!job.id.empty()) {
    const study::SlurmTasks tasks = study::slurm_tasks(job);
    print(fmt::format("Job {}: {} tasks, {} ended, {} running, {} pending\n", job.id, job.tasks, tasks.ended,
                      tasks.running, tasks.pending));
    for (std::uint32_t shard = 1; shard <= job.tasks; ++shard) {
      const std::string file = study::shard_database(database, shard);
      if (!fs::exists(file)) continue;
      SweepStore store(file, SweepStore::Access::read);
      print(fmt::format("  shard {}: {}\n", shard, counts_text(store.counts())));
    }
    if (tasks.ended == job.tasks) {
      SweepStore store(database, SweepStore::Access::work);
      merge_shards(store, database, job.tasks);
    }
  }
  SweepStore store(database, SweepStore::Access::read);
  print(fmt::format("{}: {}\n", database, counts_text(store.counts())));
}

}  // namespace

void add_sweep_submit_commands(CLI::App& sweep) {
  const auto options = std::make_shared<SubmitCommand>();
  CLI::App* command = sweep.add_subcommand("submit", "Compute a grid as a job array of Slurm");
  add_grid_arguments(*command, options->grid);
  command->add_option("--tasks", options->slurm.tasks, "Tasks of the array, each with a part of the points")
      ->check(whole_number(1, 100'000))
      ->capture_default_str();
  command->add_option("--cpus-per-task", options->slurm.cpus_per_task, "Points that a task computes at a time")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  command->add_option("--partition", options->slurm.partition, "Slurm's partition [its default]");
  command->add_option("--time", options->slurm.time, "Slurm's time limit of a task [its default]");
  command->add_option("--sbatch", options->slurm.others, "A further option of sbatch, such as --sbatch=--mem=4G")
      ->allow_extra_args(false)
      ->type_name("OPTION");
  command->add_flag("--detach", options->detach, "Do not wait; `hcclsim sweep status` follows and merges");
  command->footer(
      "The database and its folder must be on a file system that all nodes share. Ctrl-C leaves the job alone.\n"
      "Examples:\n"
      "  hcclsim sweep submit --tasks 16 --cpus-per-task 8 big.db run --model resnet50,vgg16 --split-by-size 50:99:1");
  command->callback([options] { submit(*options); });

  const auto database = std::make_shared<std::string>();
  command = sweep.add_subcommand("status", "How far a sweep is; takes the results of a job that has ended");
  command->add_option("DATABASE", *database, "File of `hcclsim sweep run` or `submit`")->required()->type_name("FILE");
  command->callback([database] { status(*database); });
}

}  // namespace hcclsim::cli
