#pragma once

#include "hccl/schedule/schedule.hpp"

namespace hcclsim::hccl {

/// Byte ranges of single tasks, of a schedule whose closed forms are right (validate.hpp): they exist, are as long on
/// both sides, cut no element in two and do not overlap; no input is written. On as many evenly spaced ranks as a fixed
/// number of tasks allows. Throws ScheduleError for the first thing that is wrong.
void check_byte_ranges(const Schedule& schedule);

}  // namespace hcclsim::hccl
