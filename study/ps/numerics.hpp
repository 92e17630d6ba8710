#pragma once

#include "hccl/ps/simulation.hpp"
#include "study/ps/ps.hpp"

namespace hcclsim::study {

/// Repeats the job with real gradients, in the shape and with the settings of the run's numerics; and data parallelism
/// beside it, if its number of workers stays the same. Throws Error(bad_input) as training without servers does.
[[nodiscard]] PsNumerics replay_numbers(PsExperiment& made, const hccl::PsOutcome& outcome);

}  // namespace hcclsim::study
