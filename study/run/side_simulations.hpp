#pragma once

#include <functional>
#include <vector>

#include "study/run/experiment/experiment.hpp"
#include "study/run/result.hpp"
#include "study/run/run.hpp"

/// What is simulated besides the step of a run: comparisons, ranges, other seeds, what is sent before the first step.
/// Each works in children of the process that has loaded the platform, while that process simulates the step itself.
namespace hcclsim::study {

/// Waits for what was started and puts it into the result, which has the figures of the step.
using FinishSideSimulation = std::function<void(RunResult& result)>;

/// Starts what the wishes ask for and what goes with the run. Must be called before this process simulates anything;
/// the experiment must outlive the functions. Adds to its notes what is left out.
[[nodiscard]] std::vector<FinishSideSimulation> start_side_simulations(Experiment& experiment, const RunWishes& wishes);

}  // namespace hcclsim::study
