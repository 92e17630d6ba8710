#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/print/numerics_report.hpp"
#include "cli/terminal/interruption.hpp"
#include "cli/terminal/progress.hpp"

/// The loop around real training steps: progress, checkpoints on the way, an end on Ctrl-C. What a step is does not
/// matter to it.
namespace hcclsim::cli {

struct TrainingLoop {
  std::uint32_t iterations = 0;
  std::uint32_t save_every = 0;  ///< 0: at the end only
  /// One step. The exactness of the reduction is to be looked at in the first and the last one; an interrupted training
  /// has the first.
  std::function<NumericsIteration(bool checked)> step{};
  std::function<void()> save{};  ///< empty: no checkpoint is wanted
};

/// Runs the steps; ends after one during which a signal came. Saves after the last step, whichever it is. Returns what
/// was done.
[[nodiscard]] std::vector<NumericsIteration> run_training(const TrainingLoop& loop, Progress& progress,
                                                          const Interruption& interruption);

}  // namespace hcclsim::cli
