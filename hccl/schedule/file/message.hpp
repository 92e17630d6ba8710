#pragma once

#include <hccl/schedule/file/schedule.pb.h>

#include "hccl/schedule/schedule.hpp"

/// Conversion between a Schedule and the message in files (schedule.proto).
namespace hcclsim::hccl {

inline constexpr std::uint32_t schedule_version = 1;

/// The message of a schedule; fields with their default value are left out.
[[nodiscard]] schedule_format::Schedule message_of(const Schedule& schedule);

/// The schedule of a message, which validate() may still refuse. Throws ScheduleError for what no schedule can hold.
[[nodiscard]] Schedule schedule_of(const schedule_format::Schedule& message);

}  // namespace hcclsim::hccl
