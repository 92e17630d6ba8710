#pragma once

#include <optional>

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"
#include "hccl/check/symmetry/symmetry.hpp"

/// Levels L3 to L5 for a program of which the first ranks are unrolled and stand for all.
///
/// The run is the lockstep of symmetry.hpp. For L3, the clock of a queue of one of these ranks has an entry for every
/// queue of every rank, so the search need not be repeated; the clock of an image is the same, relative to the image.
/// This takes 4 bytes · period · ranks · queues², and 4 · ranks · queues more for every post that has not been waited
/// for yet.
namespace hcclsim::hccl {

/// Whether the clocks of the queues fit into half a GiB.
[[nodiscard]] bool races_fit_by_rotation(const Schedule& schedule, const Rotation& rotation);

/// check_races (races.hpp): the same findings, about the memory and the notifies of the first ranks.
[[nodiscard]] bool check_races_by_rotation(const TaskProgram& program, const Rotation& rotation, Findings& matching,
                                           Findings& races);

/// check_meaning (meaning.hpp) for a program without races of which the first ranks are unrolled and stand for all. It
/// gives the same findings, about these ranks, and the same order of reduction. The lockstep of symmetry.hpp tracks
/// what their memory holds; what another rank holds is an image of it.
[[nodiscard]] std::optional<ReductionOrder> check_meaning_by_rotation(const TaskProgram& program,
                                                                      const Rotation& rotation,
                                                                      const CheckOptions& options, Findings& meaning,
                                                                      Findings& order);

}  // namespace hcclsim::hccl
