#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/output_file.hpp"
#include "cli/options/run_options.hpp"
#include "cli/print/numerics_report.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/progress.hpp"
#include "device/soc.hpp"
#include "hccl/parallel/plan.hpp"
#include "hccl/training/step_view.hpp"

/// `hcclsim run --numerics`: the timed run's network, segments and Schedules, trained with real numbers.
namespace hcclsim::cli {

/// What must exist before the simulating child does: the terminal and the signals.
struct NumericsSession {
  Progress& progress;
  const Interruption& interruption;
  bool tells_effort = true;  ///< wall time and memory, on standard error
};

/// The timed run that real numbers go with.
struct TimedRun {
  Rank npus = 1;
  const device::Soc& soc;
  const hccl::Plan& plan;
  std::span<const hccl::IterationPoints> iterations;  ///< of the printed rank, as many as are trained
};

/// The files that training writes. They are opened before the simulation, so that a path that cannot be written is
/// known at once.
class NumericsFiles {
 public:
  /// Throws Error(bad_input, "output").
  explicit NumericsFiles(const NumericsOptions& options);
  /// Writes the chart of the loss, if one is wanted; it appears with commit().
  void plot(const NumericsReport& report, const std::string& title);
  void commit();

 private:
  std::vector<OutputFile> loss_plot_;  // one or none
};

/// Trains, saves checkpoints, and tells the effort if the session wants it. Throws Error(bad_input) of kind
/// "option", "memory", "data", "dtype", "checkpoint" or "output".
[[nodiscard]] NumericsReport run_numerics(const RunOptions& options, const TimedRun& timed, NumericsSession& session);

/// Throws Error(check_failed) if replicas differ, if a reduction is farther off than its rounding can explain, or if a
/// gradient contradicts its difference quotient.
void require_exact(const NumericsReport& report);

}  // namespace hcclsim::cli
