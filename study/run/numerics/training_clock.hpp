#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/child_process.hpp"
#include "base/units.hpp"
#include "hccl/training/training.hpp"
#include "study/run/experiment/experiment.hpp"

/// Simulated time for a training with real numbers, however long. The first iterations are simulated in full, as those
/// of a run without real numbers. Those behind them are needed for their step times alone: where kernels jitter, a
/// child simulates them while training goes on; where they do not, it ends as soon as the step repeats itself, which
/// goes on for ever. So neither the time before the first training step nor memory grows with the number of iterations.
/// With gradient compression, whose first steps are plain, all iterations are simulated in full.
namespace hcclsim::study {

/// Iterations that are simulated in full, at most, without gradient compression.
inline constexpr std::uint32_t iterations_in_full = 20;

/// Training that goes on: where the training before it has ended in simulated time.
struct SimulatedPast {
  std::uint32_t iterations = 0;
  std::vector<Seconds> ends{};  ///< of the last of them, on every rank; of other ranks or empty: not known
};

class TrainingClock {
 public:
  /// Sets how many iterations experiment.training simulates, from where on, and notes where these are not all. Must be
  /// made before this process simulates anything; the experiment must outlive it.
  TrainingClock(Experiment& experiment, std::uint32_t iterations, const SimulatedPast& past);

  /// To be called with what the experiment simulated in full, which must outlive the last next().
  void begin(const hccl::TimedStep& full);
  /// Moves on by an iteration and returns its duration on the rank that is reported: since the one before ended, the
  /// first since it started. Throws what the simulation of it throws.
  Seconds next();
  /// Ends of that iteration on every rank, since the training began.
  [[nodiscard]] const std::vector<Seconds>& ends() const { return ends_; }

 private:
  void advance();

  Rank rank_;
  std::uint32_t skipped_ = 0;  // iterations that the past has and that are simulated again
  std::optional<ChildStream> later_;
  const hccl::TimedStep* full_ = nullptr;
  std::size_t index_ = 0;       // iterations that were handed out
  std::vector<Seconds> ends_;   // of the iteration, on every rank
  std::vector<Seconds> steps_;  // its duration, on every rank
};

/// Whether two iterations took the same time on all ranks, but for rounding; dates are the ends of three.
[[nodiscard]] bool repeats(std::span<const Seconds> first, std::span<const Seconds> second,
                           std::span<const Seconds> third);

}  // namespace hcclsim::study
