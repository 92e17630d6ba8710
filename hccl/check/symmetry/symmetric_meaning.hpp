#pragma once

#include <optional>

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"
#include "hccl/check/symmetry/symmetry.hpp"

namespace hcclsim::hccl {

/// check_meaning (meaning.hpp) for a program of which the first ranks are unrolled and stand for all, and which has no
/// races: the same findings, about them, and the same order of reduction. What their memory holds is carried along in
/// the lockstep of symmetry.hpp; what another rank holds is its image.
[[nodiscard]] std::optional<ReductionOrder> check_meaning_by_rotation(const TaskProgram& program,
                                                                      const Rotation& rotation,
                                                                      const CheckOptions& options, Findings& meaning,
                                                                      Findings& order);

}  // namespace hcclsim::hccl
