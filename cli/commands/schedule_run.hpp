#pragma once

#include <string>

#include "hccl/schedule/schedule.hpp"

/// `hcclsim schedule run`: a schedule executed on real data and compared with what its operation asks for.
namespace hcclsim::cli {

class Command;

void add_schedule_run(Command& schedule);

/// Throws Error(bad_input, "memory") that names the file if the buffers of all ranks do not fit into this computer.
void require_memory(const std::string& file, const hccl::Schedule& schedule);

}  // namespace hcclsim::cli
