#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// A sweep as a job array of Slurm: every task computes one shard into a database of its own; the shards are merged at
/// the end. Beside DATABASE lies the folder DATABASE.slurm with the batch script, the number of the last job, and a
/// database and a log per task. Their names hold the job's number, so that jobs of different sizes never meet in a
/// file.
namespace hcclsim::study {

/// Of an array; Slurm's own limit (MaxArraySize) is usually lower.
inline constexpr std::uint32_t most_tasks = 100'000;

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
  std::map<std::string, std::uint32_t> not_completed{};  ///< tasks that ended otherwise than COMPLETED, by their state
};

[[nodiscard]] std::string slurm_folder(const std::string& database);
/// The databases of tasks that there are, by job and task.
[[nodiscard]] std::vector<std::string> shard_databases(const std::string& database);

/// The text of the script. `sweep_run` is the command up to its options of the sweep, `grid` what follows the database;
/// both are written as a shell takes them.
[[nodiscard]] std::string slurm_script(const std::string& database, const SlurmOptions& options,
                                       const std::string& sweep_run, const std::string& grid);

/// Writes the script, submits it and keeps the job's number in the folder. Throws Error(bad_input, "slurm") with what
/// sbatch said.
[[nodiscard]] SlurmJob submit_to_slurm(const std::string& database, const std::string& script, std::uint32_t tasks);

/// The number of the job in what `sbatch --parsable` prints, warnings among it; throws Error(bad_input, "slurm").
[[nodiscard]] std::string parse_job_id(std::string_view said);

/// The job that was submitted last for a database; without an id if there was none. Throws Error(bad_input, "slurm")
/// for a file that says something else.
[[nodiscard]] SlurmJob slurm_job(const std::string& database);

/// Asks squeue; a job that Slurm has forgotten has ended. Throws Error(bad_input, "slurm") with what squeue said.
[[nodiscard]] SlurmTasks slurm_tasks(const SlurmJob& job);

/// The same from what `squeue --states all --format "%T"` prints: a state per line, of the tasks that have not ended
/// long ago. A state that is not known is taken for running: what a task gives is complete only when it has ended.
[[nodiscard]] SlurmTasks parse_slurm_tasks(std::string_view states, std::uint32_t tasks);

/// "4 tasks: 1 pending, 1 running, 2 ended (1 TIMEOUT)".
[[nodiscard]] std::string to_string(const SlurmTasks& tasks);

}  // namespace hcclsim::study
