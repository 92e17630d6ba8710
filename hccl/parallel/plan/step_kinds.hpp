#pragma once

#include <cstdint>
#include <set>

#include "hccl/parallel/plan/plan.hpp"

/// Tasks of a Plan may be of some steps only, so that steps differ.
namespace hcclsim::hccl {

/// The steps that may differ from the ones before them, the first one included. One alone: all steps are alike.
[[nodiscard]] std::set<std::uint32_t> kinds_of_steps(const Plan& plan);

/// Whether every task is of all steps. Where steps are alike, there may be tasks that are of none.
[[nodiscard]] bool all_in_every_step(const Plan& plan);

}  // namespace hcclsim::hccl
