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

Phases simulated_phases(const hccl::StepView& view, Seconds step_time) {
  Phases phases{.forward = view.fp_end,
                .backward = view.bp_end - view.fp_end,
                .forward_backward = view.bp_end,
                .overlapped = false,
                .update = view.update,
                .tail = view.iteration_end - view.bp_end,
                .step = step_time};
  Seconds communicated = view.bp_end;
  for (const hccl::SegmentFigures& segment : view.segments) {
    phases.allreduces.push_back(segment.end - segment.start);
    phases.overlapped = *phases.overlapped || segment.start < view.bp_end;
    communicated = std::max(communicated, segment.end);
  }
  if (view.checks.has_value()) communicated = std::max(communicated, view.checks->flag.end);
  phases.last_update = view.iteration_end - communicated;
  return phases;
}

}  // namespace hcclsim::study
