#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  // Of a step, as PyTorch's profiler tells them:
  std::optional<Seconds> computing{};      ///< time during which the NPU computes
  std::optional<Seconds> communication{};  ///< time during which it communicates
  std::optional<Seconds> exposed{};        ///< the part of it during which it does not compute
  std::optional<Seconds> free{};           ///< time during which it does neither
};

/// The phases that are one duration, by their names, in the order in which they are printed.
struct PhaseName {
  std::string_view name;
  std::optional<Seconds> Phases::*value;
};
inline constexpr std::array<PhaseName, 3> compute_phases{
    {{"FP", &Phases::forward}, {"BP", &Phases::backward}, {"FP+BP", &Phases::forward_backward}}};
inline constexpr std::array<PhaseName, 8> later_phases{{{"update", &Phases::update},
                                                        {"update after AR", &Phases::last_update},
                                                        {"tail", &Phases::tail},
                                                        {"step", &Phases::step},
                                                        {"Computing", &Phases::computing},
                                                        {"Communication", &Phases::communication},
                                                        {"Communication(Not Overlapped)", &Phases::exposed},
                                                        {"Free", &Phases::free}}};

/// Phases as one file tells them.
struct MeasuredPhases {
  std::string file;
  std::string_view kind;         ///< "op_summary", "step_trace", …
  std::uint32_t iterations = 0;  ///< that they are means of; 0: the file does not say
  Phases phases{};
};

/// Those of the steps that are not more than ten times as long as the lower median: between two runs in one file lies
/// time that is in no step.
[[nodiscard]] std::vector<Seconds> usual_steps(std::vector<Seconds> steps);

/// What `measured` has, with `other` where it says nothing.
[[nodiscard]] Phases merged(const Phases& measured, const Phases& other);

/// Sentences about phases that two of the files tell differently, by more than 5 %: with both durations. The file that
/// comes first is the one that counts, and is said to be.
[[nodiscard]] std::vector<std::string> contradictions(const std::vector<MeasuredPhases>& files);

/// The phases of the rank that is seen, of which a step takes `step_time`.
[[nodiscard]] Phases simulated_phases(const hccl::StepView& view, Seconds step_time);

}  // namespace hcclsim::study
