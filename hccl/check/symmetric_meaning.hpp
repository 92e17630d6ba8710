#pragma once

#include <optional>

#include "hccl/check/report.hpp"
#include "hccl/check/symmetry.hpp"
#include "hccl/check/task_program.hpp"

namespace hcclsim::hccl {

/// check_meaning (meaning.hpp) for a program of which rank 0 is unrolled and stands for all, and which has no races:
/// the same findings, about rank 0, and the same order of reduction. What the memory of rank 0 holds is carried along
/// in the lockstep of symmetry.hpp; what another rank holds is its image.
[[nodiscard]] std::optional<ReductionOrder> check_meaning_by_rotation(const TaskProgram& program,
                                                                      const Rotation& rotation,
                                                                      const CheckOptions& options, Findings& meaning,
                                                                      Findings& order);

}  // namespace hcclsim::hccl
