#pragma once

#include <optional>

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"
#include "hccl/check/symmetry/symmetry.hpp"

namespace hcclsim::hccl {

/// check_meaning (meaning.hpp) for a program without races of which the first ranks are unrolled and stand for all. It
/// gives the same findings, about these ranks, and the same order of reduction. The lockstep of symmetry.hpp tracks
/// what their memory holds; what another rank holds is an image of it.
[[nodiscard]] std::optional<ReductionOrder> check_meaning_by_rotation(const TaskProgram& program,
                                                                      const Rotation& rotation,
                                                                      const CheckOptions& options, Findings& meaning,
                                                                      Findings& order);

}  // namespace hcclsim::hccl
