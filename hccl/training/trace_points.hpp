#pragma once

#include <string>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/step_view.hpp"
#include "sim/trace.hpp"

namespace hcclsim::hccl {

/// Operators at which a profiler is told to take its trace points (fp_point and bp_point of profiling_options); empty:
/// it finds them itself, the first and the last kernel.
struct TracePoints {
  std::string fp_operator{};
  std::string bp_operator{};

  [[nodiscard]] bool found_by_itself() const { return fp_operator.empty() && bp_operator.empty(); }
};

/// Moves fp_start of every iteration to the start of the first forward kernel of its operator, and bp_end to the end of
/// the last backward kernel of its. Kernels of all micro-batches count. Throws Error(bad_input, "option") for an
/// operator that the rank does not compute; the message has names that are near.
void choose_trace_points(std::vector<IterationPoints>& iterations, const Plan& plan, const sim::Trace& trace, Rank rank,
                         const TracePoints& points);

}  // namespace hcclsim::hccl
