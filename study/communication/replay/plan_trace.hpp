#pragma once

#include <cstdint>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/training.hpp"
#include "study/communication/replay/execution_trace.hpp"

/// A Plan as an execution trace: each kernel, collective and message of each rank is a node; what makes streams go in
/// order, and steps follow each other, becomes dependencies. Replayed on the platform of the Plan, with the same
/// settings of HCCL, every node has the dates that it has in the simulated step.
namespace hcclsim::study {

/// Throws Error(bad_input, "unsupported") that names what a trace cannot carry: what hosts do for a step, jitter and
/// other speeds, algorithms that were asked for, shared HBM.
void require_traceable(const hccl::TrainingStep& training);

/// As many steps as the options have iterations, one behind the other. Throws what require_traceable() does.
[[nodiscard]] ExecutionTrace trace_of(const hccl::Plan& plan, const hccl::TrainingStep& training);

}  // namespace hcclsim::study
