#include "study/compare/sweep/slurm.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/output_file.hpp"
#include "base/text.hpp"
#include "base/user_error.hpp"

namespace hcclsim::study {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int status = 0;
  std::string output;  ///< standard output and standard error
};

/// Runs a program of the PATH by a shell and waits for it.
Finished run_program(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) command += shell_word(word) + ' ';
  std::fflush(nullptr);
  FILE* const pipe = ::popen((command + "2>&1").c_str(), "re");
  if (pipe == nullptr) refused_by_system(fmt::format("to start {}", words.front()), errno);
  Finished finished;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    finished.output.append(buffer.data(), count);
  }
  finished.status = ::pclose(pipe);
  constexpr int not_found = 127;
  if (WIFEXITED(finished.status) && WEXITSTATUS(finished.status) == not_found) {
    bad_input("slurm", "{}: {}; sweeps are submitted where Slurm's commands are installed", words.front(),
              std::strerror(ENOENT));
  }
  return finished;
}

std::string job_file(const std::string& database) { return slurm_folder(database) + "/job.json"; }

}  // namespace

std::string slurm_folder(const std::string& database) { return fs::absolute(database).string() + ".slurm"; }

std::vector<std::string> shard_databases(const std::string& database) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(slurm_folder(database), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("shard-") && name.ends_with(".db")) files.push_back(entry.path().string());
  }
  // Numbers have no leading zeros: of two names the shorter one comes first.
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return files;
}

std::string slurm_script(const std::string& database, const SlurmOptions& options, const std::string& sweep_run,
                         const std::string& grid) {
  const std::string folder = slurm_folder(database);
  std::string script = "#!/bin/sh\n#SBATCH --job-name=hcclsim-sweep\n";
  script += fmt::format("#SBATCH --array=1-{}\n#SBATCH --cpus-per-task={}\n", options.tasks, options.cpus_per_task);
  script += fmt::format("#SBATCH --output={}\n", shell_word(folder + "/shard-%A-%a.log"));
  if (!options.partition.empty()) script += fmt::format("#SBATCH --partition={}\n", shell_word(options.partition));
  if (!options.time.empty()) script += fmt::format("#SBATCH --time={}\n", shell_word(options.time));
  for (const std::string& other : options.others) script += fmt::format("#SBATCH {}\n", other);
  script += fmt::format(
      "exec {} --jobs {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" "
      "{}\"/shard-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID.db\" {}\n",
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
  if (finished.status != 0) bad_input("slurm", "sbatch refused {}: {}", path, trimmed(finished.output));
  SlurmJob job{parse_job_id(finished.output), tasks};
  write_file_atomically(job_file(database), Json{{"job", job.id}, {"tasks", job.tasks}}.dump() + '\n');
  return job;
}

std::string parse_job_id(std::string_view said) {
  for (const std::string_view line : split_trimmed(said, '\n')) {
    const std::string_view number = line.substr(0, line.find(';'));  // the name of the cluster may follow
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos) return std::string(number);
  }
  bad_input("slurm", "sbatch does not say the number of the job, but '{}'; squeue shows whether it was submitted",
            trimmed(said));
}

SlurmJob slurm_job(const std::string& database) {
  std::ifstream file(job_file(database));
  if (!file) return {};
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const Json json = Json::try_parse(text).value_or(Json());
  const Json id = json.value("job", Json());
  const Json tasks = json.value("tasks", Json());
  if (!id.is_string() || !tasks.is_number_unsigned() || tasks.get<std::uint64_t>() > most_tasks) {
    bad_input("slurm", "{}: not what `hcclsim sweep submit` writes; remove it", job_file(database));
  }
  return {id.get<std::string>(), tasks.get<std::uint32_t>()};
}

SlurmTasks slurm_tasks(const SlurmJob& job) {
  const Finished finished =
      run_program({"squeue", "--noheader", "--array", "--states", "all", "--jobs", job.id, "--format", "%T"});
  if (finished.status == 0) return parse_slurm_tasks(finished.output, job.tasks);
  if (finished.output.find("Invalid job id") != std::string::npos) return {.ended = job.tasks};
  bad_input("slurm", "squeue: {}", trimmed(finished.output));
}

SlurmTasks parse_slurm_tasks(std::string_view states, std::uint32_t tasks) {
  constexpr std::array<std::string_view, 7> waiting{"PENDING",      "CONFIGURING",  "REQUEUED",     "REQUEUE_FED",
                                                    "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  constexpr std::array<std::string_view, 10> over{"COMPLETED", "FAILED",        "CANCELLED", "TIMEOUT",  "NODE_FAIL",
                                                  "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"};
  const auto is_among = [](const auto& names, std::string_view state) {
    return std::find(names.begin(), names.end(), state) != names.end();
  };
  SlurmTasks found;
  for (const std::string_view state : split_trimmed(states, '\n')) {
    if (state.empty()) continue;
    if (is_among(waiting, state)) {
      ++found.pending;
    } else if (!is_among(over, state)) {
      ++found.running;
    } else if (state != "COMPLETED") {
      ++found.not_completed[std::string(state)];
    }
  }
  found.ended = tasks - std::min(tasks, found.running + found.pending);
  return found;
}

std::string to_string(const SlurmTasks& tasks) {
  std::string text =
      fmt::format("{} tasks: {} pending, {} running, {} ended", tasks.pending + tasks.running + tasks.ended,
                  tasks.pending, tasks.running, tasks.ended);
  const char* before = " (";
  for (const auto& [state, count] : tasks.not_completed) {
    text += fmt::format("{}{} {}", std::exchange(before, ", "), count, state);
  }
  return tasks.not_completed.empty() ? text : text + ')';
}

}  // namespace hcclsim::study
