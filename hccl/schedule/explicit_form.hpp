#pragma once

#include <cstdint>

#include "hccl/schedule/schedule.hpp"

namespace hcclsim::hccl {

/// Tasks of the largest schedule that is written out: some 300 bytes of memory each.
inline constexpr std::uint64_t most_listed_tasks = 5'000'000;

/// The same schedule without closed forms: every queue of every rank has a list in every stage and window in which it
/// takes part (TaskList). difference() finds none. Throws Error(bad_input, "schedule") for more than most_listed_tasks.
[[nodiscard]] Schedule explicit_form(const Schedule& schedule);

}  // namespace hcclsim::hccl
