#include "study/compare/sweep/submission.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds poll_interval{1000};
/// How long squeue may fail while a job is followed: a controller that is started anew does not answer for a while.
constexpr std::chrono::minutes patience{10};

void remove_databases(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code ignored;  // a file that stays is merged again
    for (const char* const suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(file + suffix, ignored);
  }
}

/// Tasks of two jobs would compute the same points.
void require_no_job(const std::string& database) {
  const SlurmJob job = slurm_job(database);
  if (job.id.empty()) return;
  const SlurmTasks tasks = slurm_tasks(job);
  if (tasks.ended == job.tasks) return;
  bad_input("slurm", "job {} of this sweep has not ended: {}; wait for it (hcclsim sweep status {}) or scancel {}",
            job.id, to_string(tasks), database, job.id);
}

}  // namespace

std::string script_of(const Submission& submission) {
  std::string sweep_run = shell_word(fs::read_symlink("/proc/self/exe").string()) + " sweep run";
  if (!submission.config.empty()) sweep_run += " --config " + shell_word(fs::absolute(submission.config).string());
  sweep_run += submission.retry_failed ? " --shared --retry-failed" : " --shared";
  sweep_run += " --not-in " + shell_word(fs::absolute(submission.database).string());
  std::string grid;
  for (const std::string& word : submission.grid) grid += (grid.empty() ? "" : " ") + shell_word(word);
  return slurm_script(submission.database, submission.slurm, sweep_run, grid);
}

MergedShards merge_shards(SweepStore& store, const std::string& database) {
  MergedShards merged;
  for (const std::string& shard : shard_databases(database)) {
    try {
      store.merge(shard);
      merged.files.push_back(shard);
    } catch (const Error& error) {
      merged.faults.emplace_back(error.what());
    }
  }
  return merged;
}

PointCounts counts_of(SweepStore& store, const std::vector<Point>& points) {
  PointCounts counts;
  for (const PointStatus status : store.statuses(ids_of(points))) ++counts.of(status);
  return counts;
}

PointCounts prepare(const Submission& submission, const std::vector<Point>& points, std::vector<std::string>& faults) {
  const std::string& database = submission.database;
  require_no_job(database);
  SweepStore store(database, SweepStore::Access::share);
  store.add(points);
  MergedShards merged = merge_shards(store, database);
  remove_databases(merged.files);
  faults = std::move(merged.faults);
  if (submission.retry_failed) store.retry(ids_of(points));
  return counts_of(store, points);
}

SlurmTasks follow(const SlurmJob& job, const std::string& database, const std::function<bool()>& stop,
                  const std::function<void(const std::string& line)>& progress) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point answered = Clock::now();
  while (!stop()) {
    std::string line;
    try {
      SlurmTasks tasks = slurm_tasks(job);
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
    progress(fmt::format("job {}: {}", job.id, line));
    std::this_thread::sleep_for(poll_interval);
  }
  return {};
}

std::string text_of(const SlurmJob& job) {
  try {
    return to_string(slurm_tasks(job));
  } catch (const Error& error) {
    return fmt::format("{} tasks of which nothing is known: {}", job.tasks, error.what());
  }
}

}  // namespace hcclsim::study
