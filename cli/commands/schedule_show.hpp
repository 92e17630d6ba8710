#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"

/// `hcclsim schedule show`: what each rank does, what single ranks do task by task, and a space-time diagram of the
/// schedule on a platform.
namespace hcclsim::cli {

class Command;

void add_schedule_show(Command& schedule);

/// "ring allreduce among 8 ranks, 4,096 fp32 each".
[[nodiscard]] std::string headline(const hccl::Schedule& schedule);

}  // namespace hcclsim::cli
