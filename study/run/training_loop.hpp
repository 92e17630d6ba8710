#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "study/run/result.hpp"

/// The loop around real training steps: checkpoints on the way, an end before the last step where it is wanted. What a
/// step is does not matter to it.
namespace hcclsim::study {

/// Who watches a training. Functions that are empty are not called.
struct TrainingWatch {
  std::function<void()> begin{};  ///< before the first step
  std::function<void(std::size_t done, std::size_t total, double loss)> step{};
  std::function<void()> end{};   ///< after the last one
  std::function<bool()> stop{};  ///< true: the step that was done is the last
};

struct TrainingLoop {
  std::uint32_t iterations = 0;
  std::uint32_t save_every = 0;  ///< 0: at the end only
  /// One step. The exactness of the reduction is to be looked at in the first and the last one; an interrupted training
  /// has the first.
  std::function<NumericsIteration(bool checked)> step{};
  std::function<void()> save{};  ///< empty: no checkpoint is wanted
};

/// Runs the steps. Saves after the last step, whichever it is. Returns what was done.
[[nodiscard]] std::vector<NumericsIteration> run_training(const TrainingLoop& loop, const TrainingWatch& watch);

}  // namespace hcclsim::study
