#include "study/profile/phases.hpp"

#include <algorithm>

namespace hcclsim::study {

Phases merged(const Phases& measured, const Phases& other) {
  Phases result = measured;
  const auto fill = [](std::optional<Seconds>& to, const std::optional<Seconds>& from) {
    if (!to.has_value()) to = from;
  };
  fill(result.forward, other.forward);
  fill(result.backward, other.backward);
  fill(result.forward_backward, other.forward_backward);
  if (result.allreduces.empty()) result.allreduces = other.allreduces;
  if (!result.overlapped.has_value()) result.overlapped = other.overlapped;
  fill(result.update, other.update);
  fill(result.last_update, other.last_update);
  fill(result.tail, other.tail);
  fill(result.step, other.step);
  return result;
}

Phases simulated_phases(const hccl::TrainingResult& result) {
  Phases phases{.forward = result.fp_end,
                .backward = result.bp_end - result.fp_end,
                .forward_backward = result.bp_end,
                .overlapped = false,
                .update = result.update,
                .tail = result.iteration_end - result.bp_end,
                .step = result.step_time};
  Seconds communicated = result.bp_end;
  for (const hccl::SegmentResult& segment : result.segments) {
    phases.allreduces.push_back(segment.end - segment.start);
    phases.overlapped = *phases.overlapped || segment.start < result.bp_end;
    communicated = std::max(communicated, segment.end);
  }
  if (result.checks.has_value()) communicated = std::max(communicated, result.checks->flag_end);
  phases.last_update = result.iteration_end - communicated;
  return phases;
}

}  // namespace hcclsim::study
