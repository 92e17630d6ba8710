#pragma once

#include <optional>

#include "base/error.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/numerics/numerics_result.hpp"
#include "study/run/numerics/training_clock.hpp"
#include "study/run/numerics/training_loop.hpp"

/// The timed run's network and Plan, trained with real numbers.
namespace hcclsim::study {

/// Where the training that the spec goes on from has ended in simulated time; nowhere without --load. Throws
/// Error(bad_input, "checkpoint").
[[nodiscard]] SimulatedPast past_of(const NumericsSpec& spec);

/// What became of the numbers.
struct Training {
  Effort effort;
  std::optional<Error> failure;  ///< what ended it early; the result holds what was done until then
};

/// Trains as the numerics of the spec say, along the Plan of the timed step and, unless null, that of its start-up, and
/// adds what came of it to `result`; saves checkpoints. Throws Error(bad_input) of kind "option", "memory", "data",
/// "dtype" or "checkpoint" before the watch is told of the begin.
[[nodiscard]] Training compute_numerics(const Experiment& experiment, const hccl::TimedStep& step,
                                        const hccl::Plan* start_up, TrainingClock& clock, const TrainingWatch& watch,
                                        NumericsResult& result);

/// Throws Error(check_failed) if training has diverged, if replicas differ, if a reduction is farther off than its
/// rounding can explain, or if a gradient contradicts its difference quotient.
void require_exact(const NumericsResult& result);

}  // namespace hcclsim::study
