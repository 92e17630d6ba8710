#pragma once

#include <string>
#include <vector>

#include "cli/options/training/run_options.hpp"
#include "study/jobs/concurrent/concurrent.hpp"

/// `run --concurrent FILE --concurrent FILE …`: jobs at the same time. Each is what `run --config FILE` with the same
/// command line is, on NPUs of its own.
namespace hcclsim::cli {

class Command;

struct ConcurrentOptions {
  std::vector<std::string> files{};  ///< of options, one per job; empty: the command is one run

  [[nodiscard]] bool enabled() const { return !files.empty(); }
};

/// Adds --concurrent, and --start, which is of a job: a key of its file.
void add_concurrent_options(Command& command, RunOptions& options, ConcurrentOptions& concurrent);

/// Of a command without --concurrent, after its file was read: throws Error(bad_input, "option") for --start.
void require_no_job(const Command& command);

/// The jobs, from the files and what the command line has for all of them, with the ranks of each that a timeline
/// shows. Throws Error(bad_input) that names file and key, or option.
struct ConcurrentJobs {
  std::vector<study::ConcurrentJob> jobs;
  std::vector<std::vector<Rank>> shown;  ///< ranks
};
[[nodiscard]] ConcurrentJobs concurrent_jobs(const Command& command, const ConcurrentOptions& concurrent);

}  // namespace hcclsim::cli
