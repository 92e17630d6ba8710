#pragma once

#include <hccl/schedule/file/schedule.pb.h>

#include <functional>
#include <string>
#include <vector>

#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/schedule/validate.hpp"

namespace hcclsim::hccl {

/// The schedule of a message, validated, or with its defects where a list for them is given. `position`: "LINE:COLUMN:
/// " of a place, or what stands between the file's name and a message.
[[nodiscard]] Schedule checked_schedule(const schedule_format::Schedule& message, const std::string& name,
                                        const std::function<std::string(const FieldPlace&)>& position,
                                        std::vector<Defect>* defects);

}  // namespace hcclsim::hccl
