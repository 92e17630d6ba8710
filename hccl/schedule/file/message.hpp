#pragma once

#include <hccl/schedule/file/schedule.pb.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hccl/schedule/schedule.hpp"
#include "hccl/schedule/validate.hpp"

/// Conversion between a Schedule and the message in files (schedule.proto).
namespace hcclsim::hccl {

inline constexpr std::uint32_t schedule_version = 1;

/// The message of a schedule; fields with their default value are left out.
[[nodiscard]] schedule_format::Schedule message_of(const Schedule& schedule);

/// Throws Error(bad_input, "schedule") for a text of another version, or of none.
void require_version(std::uint64_t version, const std::string& name);

/// The schedule of a message, which validate() may still refuse. Throws ScheduleError for what cannot be read. What can
/// be read and no schedule can hold goes to `defects`, with something else in its place, or is thrown too.
[[nodiscard]] Schedule schedule_of(const schedule_format::Schedule& message,
                                   std::vector<ScheduleError>* defects = nullptr);

}  // namespace hcclsim::hccl
