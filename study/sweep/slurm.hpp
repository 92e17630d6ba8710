#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A sweep as a job array of Slurm: every task computes one shard into a database of its own, since SQLite files are
/// not to be written by several machines; the shards are merged at the end. Beside DATABASE lies the folder
/// DATABASE.slurm with the batch script, the number of the job, and a database and a log per shard.
namespace hcclsim::study {

struct SlurmOptions {
  std::uint32_t tasks = 1;          ///< of the array: shards
  std::uint32_t cpus_per_task = 1;  ///< points that a task computes at a time
  std::string partition;            ///< empty: Slurm's default
  std::string time;                 ///< limit as Slurm takes it; empty: Slurm's default
  std::vector<std::string> others;  ///< further options of sbatch
};

struct SlurmJob {
  std::string id;
  std::uint32_t tasks = 0;
};

/// Tasks of a job by what Slurm says of them.
struct SlurmTasks {
  std::uint32_t pending = 0;
  std::uint32_t running = 0;
  std::uint32_t ended = 0;
};

[[nodiscard]] std::string slurm_folder(const std::string& database);
[[nodiscard]] std::string shard_database(const std::string& database, std::uint32_t shard);

/// The text of the script. `sweep_run` is the command up to its options of the sweep, `grid` what follows the database;
/// both are written as a shell takes them.
[[nodiscard]] std::string slurm_script(const std::string& database, const SlurmOptions& options,
                                       const std::string& sweep_run, const std::string& grid);

/// Writes the script, submits it and keeps the job's number in the folder. Throws Error(bad_input, "slurm") with what
/// sbatch said.
[[nodiscard]] SlurmJob submit_to_slurm(const std::string& database, const std::string& script, std::uint32_t tasks);

/// The job that was submitted last for a database; without an id if there was none.
[[nodiscard]] SlurmJob slurm_job(const std::string& database);

/// Asks squeue; a job that Slurm has forgotten has ended.
[[nodiscard]] SlurmTasks slurm_tasks(const SlurmJob& job);

/// The same from what `squeue -o "%T"` prints: a state per line, of the tasks that have not ended long ago.
[[nodiscard]] SlurmTasks parse_slurm_tasks(std::string_view states, std::uint32_t tasks);

}  // namespace hcclsim::study
