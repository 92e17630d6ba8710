#pragma once

#include "study/experiment.hpp"
#include "study/run/result.hpp"
#include "study/run/training_loop.hpp"

/// The timed run's network and Plan, trained with real numbers.
namespace hcclsim::study {

/// Trains as the spec's numerics say and adds what came of it to the result; saves checkpoints. Throws Error(bad_input)
/// of kind "option", "memory", "data", "dtype", "checkpoint" or "output".
Effort compute_numerics(const RunSpec& spec, const Experiment& experiment, const TrainingWatch& watch,
                        RunResult& result);

/// Throws Error(check_failed) if replicas differ, if a reduction is farther off than its rounding can explain, or if a
/// gradient contradicts its difference quotient.
void require_exact(const NumericsResult& result);

}  // namespace hcclsim::study
