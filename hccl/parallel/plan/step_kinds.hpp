#pragma once

#include <cstdint>
#include <set>

#include "hccl/parallel/plan/plan.hpp"

/// Tasks of a Plan may be of some steps only, so that steps differ.
namespace hcclsim::hccl {

/// The steps that may differ from the ones before them, the first one included. One alone: all steps are alike, and
/// every task is of all of them.
[[nodiscard]] std::set<std::uint32_t> kinds_of_steps(const Plan& plan);

}  // namespace hcclsim::hccl
