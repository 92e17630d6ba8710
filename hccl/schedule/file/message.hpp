#pragma once

#include <hccl/schedule/file/schedule.pb.h>

#include "hccl/schedule/schedule.hpp"

/// Between a Schedule and the message that files hold (schedule.proto).
namespace hcclsim::hccl {

inline constexpr std::uint32_t schedule_version = 1;

/// Fields that have their default are left out.
[[nodiscard]] schedule_format::Schedule message_of(const Schedule& schedule);

/// A schedule that validate() has accepted; throws ScheduleError.
[[nodiscard]] Schedule schedule_of(const schedule_format::Schedule& message);

}  // namespace hcclsim::hccl
