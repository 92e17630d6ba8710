#include "study/sweep/slurm.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int status = 0;
  std::string output;  ///< standard output and standard error
};

/// Runs a program of the PATH and waits for it.
Finished run_program(std::vector<std::string> words) {
  std::array<int, 2> output{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) internal_error("cannot make a pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output[1], STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments.front(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(output[1]);
  Finished finished;
  std::array<char, 4096> buffer{};
  while (error == 0) {
    const ssize_t count = ::read(output[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    finished.output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(output[0]);
  if (error != 0) {
    bad_input("slurm", "{}: {}; sweeps are submitted where Slurm's commands are installed", words.front(),
              std::strerror(error));
  }
  while (::waitpid(pid, &finished.status, 0) < 0 && errno == EINTR) {
  }
  return finished;
}

std::string job_file(const std::string& database) { return slurm_folder(database) + "/job.json"; }

}  // namespace

std::string slurm_folder(const std::string& database) { return fs::absolute(database).string() + ".slurm"; }

std::string shard_database(const std::string& database, std::uint32_t shard) {
  return fmt::format("{}/shard-{}.db", slurm_folder(database), shard);
}

std::string slurm_script(const std::string& database, const SlurmOptions& options, const std::string& sweep_run,
                         const std::string& grid) {
  const std::string folder = slurm_folder(database);
  std::string script = "#!/bin/sh\n#SBATCH --job-name=hcclsim-sweep\n";
  script += fmt::format("#SBATCH --array=1-{}\n#SBATCH --cpus-per-task={}\n", options.tasks, options.cpus_per_task);
  script += fmt::format("#SBATCH --output={}\n", shell_word(folder + "/shard-%a.log"));
  if (!options.partition.empty()) script += fmt::format("#SBATCH --partition={}\n", shell_word(options.partition));
  if (!options.time.empty()) script += fmt::format("#SBATCH --time={}\n", shell_word(options.time));
  for (const std::string& other : options.others) script += fmt::format("#SBATCH {}\n", other);
  script +=
      fmt::format("exec {} --jobs {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" {}\"/shard-$SLURM_ARRAY_TASK_ID.db\" {}\n",
                  sweep_run, options.cpus_per_task, options.tasks, shell_word(folder), grid);
  return script;
}

SlurmJob submit_to_slurm(const std::string& database, const std::string& script, std::uint32_t tasks) {
  const std::string folder = slurm_folder(database);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) bad_input("slurm", "{}: cannot be made: {}", folder, error.message());
  const std::string path = folder + "/sweep.sh";
  write_file_atomically(path, script);
  const Finished finished = run_program({"sbatch", "--parsable", path});
  const std::string said(trimmed(finished.output));
  if (finished.status != 0) bad_input("slurm", "sbatch refused {}: {}", path, said);
  SlurmJob job{said.substr(0, said.find(';')), tasks};
  write_file_atomically(job_file(database), nlohmann::json{{"job", job.id}, {"tasks", job.tasks}}.dump() + '\n');
  return job;
}

SlurmJob slurm_job(const std::string& database) {
  std::ifstream file(job_file(database));
  if (!file) return {};
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("job") || !json.contains("tasks")) {
    bad_input("slurm", "{}: not what `hcclsim sweep submit` writes; remove it", job_file(database));
  }
  return {json["job"].get<std::string>(), json["tasks"].get<std::uint32_t>()};
}

SlurmTasks slurm_tasks(const SlurmJob& job) {
  const Finished finished = run_program({"squeue", "--noheader", "--array", "--jobs", job.id, "--format", "%T"});
  if (finished.status == 0) return parse_slurm_tasks(finished.output, job.tasks);
  if (finished.output.find("Invalid job id") != std::string::npos) return {.ended = job.tasks};
  bad_input("slurm", "squeue: {}", trimmed(finished.output));
}

SlurmTasks parse_slurm_tasks(std::string_view states, std::uint32_t tasks) {
  SlurmTasks found;
  for (const std::string_view state : split_trimmed(states, '\n')) {
    if (state == "RUNNING" || state == "COMPLETING" || state == "SUSPENDED") ++found.running;
    if (state == "PENDING" || state == "CONFIGURING" || state == "REQUEUED") ++found.pending;
  }
  found.ended = tasks - std::min(tasks, found.running + found.pending);
  return found;
}

}  // namespace hcclsim::study
