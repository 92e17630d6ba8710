#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "study/compare/sweep/slurm.hpp"
#include "study/compare/sweep/sweep.hpp"

/// A sweep on a cluster that Slurm manages, from here: prepared, submitted, followed, and its shards merged.
namespace hcclsim::study {

struct Submission {
  std::string database{};
  std::string config{};             ///< file of the grid; empty: none
  std::vector<std::string> grid{};  ///< what follows the database on the command line
  SlurmOptions slurm{};
  bool retry_failed = false;
};

/// Of the job: every task is `hcclsim sweep run` with this program.
[[nodiscard]] std::string script_of(const Submission& submission);

/// Databases of tasks whose points were taken, and what is wrong with those that cannot be read.
struct MergedShards {
  std::vector<std::string> files{};
  std::vector<std::string> faults{};
};
/// Takes what the tasks of all jobs have finished.
MergedShards merge_shards(SweepStore& store, const std::string& database);

[[nodiscard]] PointCounts counts_of(SweepStore& store, const std::vector<Point>& points);

/// Brings the database to what is known and prepares it for a job; returns the counts of the grid's points, and adds to
/// `faults`. It is closed again, since other machines read the file as long as the job runs. Throws Error(bad_input,
/// "slurm") while another job of this sweep has not ended.
[[nodiscard]] PointCounts prepare(const Submission& submission, const std::vector<Point>& points,
                                  std::vector<std::string>& faults);

/// Follows a job until all its tasks have ended, and returns how, or until `stop` says so, which leaves the job alone.
/// `progress` gets a line now and then. Throws Error(bad_input, "slurm") if Slurm does not answer for long.
[[nodiscard]] SlurmTasks follow(const SlurmJob& job, const std::string& database, const std::function<bool()>& stop,
                                const std::function<void(const std::string& line)>& progress);

/// "4 tasks: 1 pending, 1 running, 2 ended", also when Slurm does not answer.
[[nodiscard]] std::string text_of(const SlurmJob& job);

}  // namespace hcclsim::study
