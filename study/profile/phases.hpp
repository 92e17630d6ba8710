#pragma once

#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/training/step_view.hpp"

/// A training step in phases: what a profile tells of a real one, and the same of a simulated one. Both are defined
/// alike, so that they can be compared.
namespace hcclsim::study {

/// Durations, those that are known.
struct Phases {
  std::optional<Seconds> forward{};           ///< FP: from the first kernel's start to the last forward kernel's end
  std::optional<Seconds> backward{};          ///< BP: from there to the last backward kernel's end
  std::optional<Seconds> forward_backward{};  ///< from FP start to BP end
  std::vector<Seconds> allreduces{};          ///< of each segment, in the order of their starts
  std::optional<bool> overlapped{};           ///< whether an allreduce begins before BP end
  std::optional<Seconds> update{};            ///< sum of checks and of the optimizer's kernels
  std::optional<Seconds> last_update{};  ///< from the later of BP end and the last allreduce's end to the step's end
  std::optional<Seconds> tail{};         ///< from BP end to the step's end
  std::optional<Seconds> step{};         ///< from one step's end to the next one's
};

/// What `measured` has, with `other` where it says nothing.
[[nodiscard]] Phases merged(const Phases& measured, const Phases& other);

/// The phases of the rank that is seen, of which a step takes `step_time`.
[[nodiscard]] Phases simulated_phases(const hccl::StepView& view, Seconds step_time);

}  // namespace hcclsim::study
