#include "study/files/profile/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hcclsim::study {

namespace {

std::string source_of(const MeasuredPhases& from) {
  if (from.iterations == 0) return fmt::format("{} ({})", from.file, from.kind);
  return fmt::format("{} ({}, {} iteration{})", from.file, from.kind, from.iterations, from.iterations == 1 ? "" : "s");
}

/// Adds what two files say of a phase if that is not the same.
void compare(std::string_view phase, Seconds used, const MeasuredPhases& by, Seconds other,
             const MeasuredPhases& by_other, std::vector<std::string>& sentences) {
  constexpr double tolerance = 0.05;
  const double apart = std::abs(other - used) / std::max(used, other);
  if (used == other || apart <= tolerance) return;
  sentences.push_back(fmt::format(
      "{}: {:.3f} ms in {}, which counts, but {:.3f} ms in {}: {:.1f} % apart, more than {:.0f} %; are they "
      "of the same run and device, with the right units?",
      phase, used * 1e3, source_of(by), other * 1e3, source_of(by_other), apart * 100, tolerance * 100));
}

}  // namespace

std::vector<Seconds> usual_steps(std::vector<Seconds> steps) {
  constexpr double much_longer = 10;
  if (steps.empty()) return steps;
  std::sort(steps.begin(), steps.end());
  const Seconds longest = much_longer * steps[(steps.size() - 1) / 2];
  std::erase_if(steps, [&](Seconds step) { return step > longest; });
  return steps;
}

Phases merged(const Phases& measured, const Phases& other) {
  Phases result = measured;
  const auto fill = [&](const PhaseName& phase) {
    if (!(result.*phase.value).has_value()) result.*phase.value = other.*phase.value;
  };
  std::for_each(compute_phases.begin(), compute_phases.end(), fill);
  std::for_each(later_phases.begin(), later_phases.end(), fill);
  if (result.allreduces.empty()) result.allreduces = other.allreduces;
  if (!result.overlapped.has_value()) result.overlapped = other.overlapped;
  return result;
}

std::vector<std::string> contradictions(const std::vector<MeasuredPhases>& files) {
  std::vector<std::string> sentences;
  const auto compare_phase = [&](const PhaseName& phase) {
    const MeasuredPhases* used = nullptr;
    for (const MeasuredPhases& file : files) {
      const std::optional<Seconds>& time = file.phases.*phase.value;
      if (!time.has_value()) continue;
      if (used != nullptr) compare(phase.name, *(used->phases.*phase.value), *used, *time, file, sentences);
      if (used == nullptr) used = &file;
    }
  };
  std::for_each(compute_phases.begin(), compute_phases.end(), compare_phase);
  const MeasuredPhases* used = nullptr;
  for (const MeasuredPhases& file : files) {
    const std::vector<Seconds>& times = file.phases.allreduces;
    if (times.empty()) continue;
    if (used == nullptr) {
      used = &file;
    } else if (times.size() != used->phases.allreduces.size()) {
      sentences.push_back(fmt::format("{} allreduces in {}, which counts, but {} in {}", used->phases.allreduces.size(),
                                      source_of(*used), times.size(), source_of(file)));
    } else {
      for (std::size_t i = 0; i < times.size(); ++i) {
        compare(fmt::format("AR{}", i + 1), used->phases.allreduces[i], *used, times[i], file, sentences);
      }
    }
  }
  std::for_each(later_phases.begin(), later_phases.end(), compare_phase);
  return sentences;
}

Phases simulated_phases(const hccl::StepView& view, Seconds step_time) {
  Phases phases{.forward = view.fp_end,
                .backward = view.bp_end - view.fp_end,
                .forward_backward = view.bp_end,
                .overlapped = false,
                .update = view.phases.update,
                .tail = view.device_end() - view.bp_end,
                .step = step_time,
                .computing = view.computing,
                .communication = view.communicating,
                .exposed = view.not_overlapped,
                .free = std::max(0.0, step_time - view.computing - view.not_overlapped)};
  Seconds communicated = view.bp_end;
  for (const hccl::SegmentFigures& segment : view.segments) {
    phases.allreduces.push_back(segment.end - segment.start);
    phases.overlapped = *phases.overlapped || segment.start < view.bp_end;
    communicated = std::max(communicated, segment.end);
  }
  if (view.checks.has_value()) communicated = std::max(communicated, view.checks->flag.end);
  phases.last_update = view.device_end() - communicated;
  return phases;
}

}  // namespace hcclsim::study
