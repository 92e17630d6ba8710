#include "cli/options/training/concurrent_options.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/baseline_options.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/training/failure_options.hpp"
#include "cli/options/training/numerics_options.hpp"
#include "cli/options/training/ps_options.hpp"

namespace hcclsim::cli {
namespace {

bool is_key_of(const std::string& key, std::span<const std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

/// Why an option has no effect on jobs beside others, wherever it is given; empty: it has.
std::string_view why_of_no_job(const Option& option) {
  constexpr std::array<std::string_view, 8> of_one_run{
      "routing-seeds", "advice",         "baseline",    "explain",
      "links",         "explain-memory", "uncertainty", "explain-uncertainty"};
  constexpr std::array<std::string_view, 5> of_files{"config", "mindformers", "megatron", "ignore-keys",
                                                     "explain-mapping"};
  const std::string key = option.key();
  if (key == "mode" || option.group() == ps_group) return "concurrent jobs train without parameter servers";
  if (key == "numerics" || option.group() == numerics_group) return "concurrent jobs are timed, without real numbers";
  if (option.group() == failure_group && !key.starts_with("checkpoint-")) return "concurrent jobs do not fail";
  if (key == "rank-table") return "npus-list says which NPUs a concurrent job is on";
  if (is_key_of(key, of_files)) return "with --concurrent every job has its own file";
  if (is_key_of(key, of_one_run) || key == "tolerance") return "it is of a run that is alone";
  if (option.role() == Role::writes_file && key != "trace") return "it is of a run that is alone";
  if (key == "trace-format") return "the timeline of concurrent jobs is Chrome's JSON";
  return {};
}

/// The same of a key of a job's file.
std::string_view why_not_in_file(const Option& option) {
  constexpr std::array<std::string_view, 3> of_all{"format", "trace", "trace-ranks"};
  if (is_key_of(option.key(), of_all)) return "it is of all jobs together: give it on the command line";
  return why_of_no_job(option);
}

/// The same of the command line.
std::string_view why_not_for_all(const Option& option) {
  constexpr std::array<std::string_view, 2> of_one_job{"npus-list", "start"};
  if (is_key_of(option.key(), of_one_job)) return "it is of one job: write it into the file of --concurrent";
  return why_of_no_job(option);
}

Seconds parse_job_start(const std::string& text) {
  const Seconds date = parse_duration(text);
  constexpr Seconds latest = 86400;  // behind it dates have less than a hundredth of a nanosecond
  if (date < 0) bad_input("option", "'{}' is negative; give a date such as 5ms", text);
  if (date > latest) bad_input("option", "'{}' is later than a day; a job starts from 0 to 1d", text);
  return date;
}

/// A command with the options of a job, as its file and the command line give them.
struct JobCommand {
  JobCommand() {
    add_run_options(command, options);
    add_baseline_options(command, baseline);
    add_concurrent_options(command, options, others);
  }

  Command command{"run", ""};
  RunOptions options{};
  BaselineOptions baseline{};
  ConcurrentOptions others{};
};

void check_job_file(const Command& command, const std::string& file) {
  for (const ConfigEntry& entry : read_config_file(file)) {
    const Option* const option = command.find("--" + entry.key);
    if (option == nullptr) continue;  // said with the others of a run
    const std::string_view reason = why_not_in_file(*option);
    if (!reason.empty()) bad_input("option", "{}: {}: {}", entry.place, entry.key, reason);
  }
}

RunOptions options_of_job(const Command& all, const std::string& file) {
  const auto job = std::make_unique<JobCommand>();
  check_job_file(job->command, file);
  for (const auto& option : all.options()) {
    if (!option->given() || option->key() == "concurrent") continue;
    for (const std::string& text : option->texts()) job->command.get(option->name()).add(text);
  }
  job->command.get("--config").add(file);
  finish_run_options(job->command, job->options);
  job->options.spec.platform.file = job->options.platform;
  return std::move(job->options);
}

/// Names of files without folder and end, where these are enough to tell them apart.
std::vector<std::string> names_of_jobs(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(std::filesystem::path(file).stem().string());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string stem = std::filesystem::path(files[i]).stem().string();
    if (std::ranges::count_if(files, [&](const auto& file) { return std::filesystem::path(file).stem() == stem; }) >
        1) {
      names[i] = files[i];
    }
  }
  return names;
}

std::vector<Rank> shown_ranks_of_job(const RunOptions& options, const std::string& name) {
  const auto npus = static_cast<Rank>(options.spec.platform.rank_table.npus_list.size());
  std::vector<Rank> ranks = options.timeline.trace_ranks;
  if (options.timeline.trace_all_ranks) {
    for (Rank rank = 0; rank < npus; ++rank) ranks.push_back(rank);
  }
  if (ranks.empty()) ranks.push_back(options.spec.simulation.rank);
  for (const Rank rank : ranks) {
    if (rank < npus) continue;
    bad_input("option", "--trace-ranks {}: {} has {} NPUs; accepted: 0 to {}", rank, name, npus, npus - 1);
  }
  return ranks;
}

}  // namespace

void add_concurrent_options(Command& command, RunOptions& options, ConcurrentOptions& concurrent) {
  command.begin_group("Several jobs");
  command
      .add("--concurrent", read_files(concurrent.files),
           "File of options of a job, as --config takes it; given several times: jobs on one platform at the same "
           "time, each on its npus-list, and how much they slow each other down")
      .value_name("FILE")
      .not_in_files();
  command
      .add("--start", parsed(parse_job_start, options.spec.skew.start),
           "Date at which a job of --concurrent starts, such as 5ms: a key of its file")
      .value_name("TIME");
}

void require_no_job(const Command& command) {
  if (!command.get("--start").given()) return;
  bad_input("option", "--start, or start in a file, is of a job beside others: give their files to --concurrent");
}

ConcurrentJobs concurrent_jobs(const Command& command, const ConcurrentOptions& concurrent) {
  if (concurrent.files.size() < 2) {
    bad_input("option", "--concurrent {}: one job has nothing beside it; give the option once per job",
              concurrent.files.front());
  }
  for (const auto& option : command.options()) {
    const std::string_view reason = option->asks() ? why_not_for_all(*option) : std::string_view();
    if (!reason.empty()) bad_input("option", "{} with --concurrent: {}", option->name(), reason);
  }
  const std::vector<std::string> names = names_of_jobs(concurrent.files);
  ConcurrentJobs jobs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    RunOptions options = options_of_job(command, concurrent.files[i]);
    jobs.jobs.push_back({names[i], std::move(options.spec)});
    options.spec = jobs.jobs.back().run;
    if (options.timeline.trace.empty() || options.spec.platform.rank_table.npus_list.empty()) {
      jobs.shown.emplace_back();
    } else {
      jobs.shown.push_back(shown_ranks_of_job(options, names[i]));
    }
  }
  study::require_concurrent(jobs.jobs);
  return jobs;
}

}  // namespace hcclsim::cli
