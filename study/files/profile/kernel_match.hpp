#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/program.hpp"
#include "models/graph.hpp"
#include "study/files/profile/kernel_profile.hpp"
#include "study/files/profile/phases.hpp"

/// Puts measured kernels in the place of the cost model's, kernel by kernel; of several iterations the mean.
///
/// A forward or backward kernel takes the time by which its end is later than that of all such kernels before it: its
/// duration, the time for which the NPU waited before it, and what ran there that is none of the model's. Of this time
/// the kernel is idle (models::Kernel::idle) while nothing ran on the NPU. So forward and backward pass take as long as
/// they were measured to take, from the first kernel of the iteration on (kernels of the AI CPU in front of it, which
/// wait for input data, do not count), also where kernels of several streams overlap.
/// An update takes its duration and those of kernels that are none of the model's and ran behind the backward pass and
/// before the update, or behind the last one; the waiting before it is that of the allreduce.
///
/// Kernels that share a measured time get parts of it in proportion to the cost model. What has no counterpart is
/// named: the measured kernels of no kernel of the model, and the model's that were not measured, which keep the
/// model's cost. Iterations that are cut off do not count: those with fewer of the model's kernels than half of all
/// have.
namespace hcclsim::study {

struct KernelMatch {
  /// A measured kernel that stands for none of the model's.
  struct Unmatched {
    std::string name;
    std::string type;
    Seconds time = 0;  ///< per iteration
  };
  /// How many kernels of a phase of the model take a measured time.
  struct Coverage {
    std::size_t measured = 0;
    std::size_t all = 0;
    Seconds modelled = 0;        ///< time of the others in a step
    std::string last{};          ///< the kernel with which the phase ends
    bool last_measured = false;  ///< so that the end of the phase is known

    [[nodiscard]] bool whole() const { return measured == all; }
    [[nodiscard]] Coverage operator+(const Coverage& later) const;
    /// "12 of 14 kernels measured, 0.009 ms modelled"
    [[nodiscard]] std::string text() const;
  };
  std::uint32_t iterations = 0;         ///< that count
  std::string iterations_by;            ///< how iterations were told apart
  std::size_t replaced = 0;             ///< kernels of the model that take a measured time
  Seconds replaced_time = 0;            ///< of all of them, in a step
  Seconds idle_time = 0;                ///< the part of it in which the NPU waits for its host
  std::vector<std::string> modelled{};  ///< kernels that keep the cost model's time, in the order of the step
  Seconds modelled_time = 0;            ///< of all of them, in a step
  std::vector<Unmatched> unmatched{};   ///< the longest first
  Seconds unmatched_time = 0;
  Seconds not_simulated_time = 0;  ///< the part of it that is in no time of the model's kernels
  Coverage forward{};
  Coverage backward{};
  Coverage update{};                 ///< with the checks of gradients
  Phases phases{};                   ///< as measured; those whose end or whose kernels were not measured are not there
  std::vector<std::string> notes{};  ///< what was left out
};

/// Replaces the durations in `program`, which must be that of `graph`, and says what of it was measured.
[[nodiscard]] KernelMatch match_kernels(const KernelProfile& profile, const models::Graph& graph,
                                        models::Program& program);

/// The same. Throws Error(bad_input, "profile") if no kernel of the forward or backward pass matches, with the first
/// names of both sides; says if fewer than half of them do.
[[nodiscard]] KernelMatch replace_kernels(const KernelProfile& profile, const models::Graph& graph,
                                          models::Program& program);

/// Replaces durations by measured ones without the waiting for communication, of a step of several micro-batches,
/// stages or ranks that share operators: a kernel takes the mean of its measured durations, or its part of the time
/// that several measured kernels take per launch. Where ranks do not wait for others within the passes
/// (`waits_for_others`), it is idle before that for the mean time in which its rank neither computed nor communicated.
/// Throws as replace_kernels() does.
[[nodiscard]] KernelMatch replace_durations(const KernelProfile& profile, const models::Graph& graph,
                                            models::Program& program, std::uint32_t micro_batches,
                                            bool waits_for_others);

}  // namespace hcclsim::study
