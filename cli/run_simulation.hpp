#pragma once

#include <vector>

#include "cli/experiment.hpp"
#include "cli/numerics_run.hpp"
#include "cli/options/run_options.hpp"
#include "cli/print/run_report.hpp"

/// `hcclsim run` between its options and its report: whatever shows the result of a run (the command itself, sweeps,
/// reports) gets it here.
namespace hcclsim::cli {

/// Simulates the loaded run, and what its options compare it with. Tasks of the traced ranks, if there are any, are in
/// the result's trace. Uses up run.notes. To be called once per process, as SimGrid holds one simulation.
[[nodiscard]] RunReport simulate_run(const RunOptions& options, Experiment& run, std::vector<Rank> traced);

/// --numerics: trains with the real numbers of the simulated run and adds what came of it to its report.
void compute_numerics(const RunOptions& options, const Experiment& run, NumericsSession& session, RunReport& report);

}  // namespace hcclsim::cli
