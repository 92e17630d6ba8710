#include "cli/commands/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/commands/sweep/sweep_run.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "study/compare/sweep/submission.hpp"

namespace hcclsim::cli {
namespace {

using study::SweepStore;

struct SubmitCommand {
  GridArguments grid;
  study::Submission submission{};
  bool detach = false;
};

void print_faults(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) print(fmt::format("Not taken: {}\n", fault));
}

void submit(SubmitCommand command) {
  const std::vector<study::Point> points = command.grid.points();
  study::Submission& submission = command.submission;
  const std::string& database = submission.database = command.grid.database;
  submission.config = command.grid.config;
  submission.grid = command.grid.parsed->rest();
  if (!command.grid.command.empty()) submission.grid.insert(submission.grid.begin(), command.grid.command);
  std::vector<std::string> faults;
  const study::PointCounts before = prepare(submission, points, faults);
  print_faults(faults);
  const std::uint64_t left = before.waiting + before.running;
  if (left == 0) {
    SweepStore store(database, SweepStore::Access::read);
    print("Nothing is left to submit\n");
    print_report(report_of(store, points, 0));
    return;
  }
  submission.slurm.tasks = static_cast<std::uint32_t>(std::min<std::uint64_t>(submission.slurm.tasks, left));
  const study::SlurmJob job = study::submit_to_slurm(database, script_of(submission), submission.slurm.tasks);
  print(fmt::format("Submitted job {}: {} points in {} tasks\n", job.id, left, job.tasks));
  if (command.detach) return;
  const Interruption interruption;
  std::optional<Progress> progress(std::in_place);
  progress->start();
  const study::SlurmTasks tasks = follow(
      job, database, [&] { return interruption.signal() != 0; },
      [&](const std::string& line) { progress->update([&](double) { return line; }); });
  progress.reset();
  if (interruption.signal() != 0) {
    print(fmt::format("Job {} goes on; hcclsim sweep status {}\n", job.id, database));
    throw Interrupted(interruption.signal());
  }
  if (!tasks.not_completed.empty()) {
    print(fmt::format("Job {}: {}; logs in {}\n", job.id, to_string(tasks), study::slurm_folder(database)));
  }
  SweepStore store(database, SweepStore::Access::share);
  print_faults(merge_shards(store, database).faults);
  const study::PointCounts after = counts_of(store, points);
  print_report(report_of(store, points, after.done + after.failed - before.done - before.failed));
}

std::string counts_text(const study::PointCounts& counts) {
  return fmt::format("{} points: {} done, {} failed, {} running, {} waiting", counts.all(), counts.done, counts.failed,
                     counts.running, counts.waiting);
}

std::string shard_text(const std::string& shard) {
  try {
    SweepStore store(shard, SweepStore::Access::read);
    return fmt::format("{}: {}", std::filesystem::path(shard).filename().string(), counts_text(store.counts()));
  } catch (const Error& error) {
    return error.what();
  }
}

void status(const std::string& database) {
  static_cast<void>(SweepStore(database, SweepStore::Access::read));  // refuses what is no sweep database
  const study::SlurmJob job = study::slurm_job(database);
  if (!job.id.empty()) print(fmt::format("Job {}: {}\n", job.id, text_of(job)));
  const std::vector<std::string> shards = study::shard_databases(database);
  for (const std::string& shard : shards) print(fmt::format("  {}\n", shard_text(shard)));
  if (!shards.empty()) {
    SweepStore store(database, SweepStore::Access::share);
    print_faults(merge_shards(store, database).faults);
  }
  SweepStore store(database, SweepStore::Access::read);
  print(fmt::format("{}: {}\n", database, counts_text(store.counts())));
}

}  // namespace

void add_sweep_submit_commands(Command& sweep) {
  const auto options = std::make_shared<SubmitCommand>();
  options->submission.slurm.tasks = 4;
  Command& submitted = sweep.add_command("submit", "Compute a grid as a job array of Slurm");
  add_grid_arguments(submitted, options->grid);
  submitted
      .add("--tasks", whole_number(options->submission.slurm.tasks, 1, study::most_tasks),
           "Tasks of the array, each with a part of the points")
      .value_name("UINT")
      .with_default();
  submitted
      .add("--cpus-per-task", whole_number(options->submission.slurm.cpus_per_task, 1, 4096),
           "Points that a task computes at a time")
      .value_name("UINT")
      .with_default();
  submitted.add("--partition", text(options->submission.slurm.partition), "Slurm's partition [its default]");
  submitted.add("--time", text(options->submission.slurm.time), "Slurm's time limit of a task [its default]");
  submitted
      .add("--sbatch", texts(options->submission.slurm.others), "A further option of sbatch, such as --sbatch=--mem=4G")
      .value_name("OPTION");
  submitted.add("--retry-failed", flag(options->submission.retry_failed), "Compute failed points anew");
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
