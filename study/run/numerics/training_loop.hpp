#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "study/run/numerics/numerics_result.hpp"

/// The loop around real training steps: checkpoints on the way, an end before the last step where it is wanted or where
/// something goes wrong. What a step is does not matter to it.
namespace hcclsim::study {

/// Who watches a training. Functions that are empty are not called.
struct TrainingWatch {
  std::function<void(const NumericsResult&)> begin{};  ///< before the loop: what is trained, without steps
  std::function<void(const NumericsIteration&, std::size_t done, std::size_t total)> step{};  ///< after each
  std::function<void()> end{};                                                                ///< after the last one
  std::function<bool()> stop{};  ///< true: the step that was done is the last
};

struct TrainingLoop {
  std::uint32_t iterations = 0;
  std::uint32_t save_every = 0;  ///< 0: at the end only
  /// One step. The exactness of the reduction is to be looked at in the first and the last one; an interrupted training
  /// has the first.
  std::function<NumericsIteration(bool checked)> step{};
  std::function<void()> save{};            ///< empty: no checkpoint is wanted
  std::function<void()> save_gradients{};  ///< of the last step, whichever it is; empty: they are not wanted
};

/// What became of a training.
struct TrainingOutcome {
  std::vector<NumericsIteration> iterations;  ///< those that were done
  std::optional<Error> failure;               ///< what ended it early, or kept it from being saved
};

/// Runs the steps. Saves after the last step, whichever it is, also if a step fails: training stands where it was
/// before it then. A file that cannot be written ends the training.
[[nodiscard]] TrainingOutcome run_training(const TrainingLoop& loop, const TrainingWatch& watch);

}  // namespace hcclsim::study
