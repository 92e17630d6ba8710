#pragma once

#include "hccl/schedule/schedule.hpp"

/// Loops that follow each other and reduce (or copy) as many bytes in each round, all by the same unit, are one loop in
/// time, wherever the bytes lie. A reduction in the order of the ranks is such a one: of p ranks, each reduces p − 1
/// times, though the loops in which it does so have as many rounds as there are ranks before it, and behind it.
namespace hcclsim::hccl {

/// Whether the members of the strand's group do as many rounds as each other of all loops, taken together in this way.
[[nodiscard]] bool same_rounds_in_time(const Schedule& schedule, const Strand& strand);

}  // namespace hcclsim::hccl
