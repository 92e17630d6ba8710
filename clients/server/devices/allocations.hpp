#pragma once

#include "clients/server/core.hpp"
#include "clients/server/devices/devices.hpp"

namespace hcclsim::clients {

/// Answers a question about memory of devices: what the thread's process allocates, reserves, maps and gives back.
[[nodiscard]] Result allocation(Core& core, const Devices& devices, ThreadId id, const Question& question);

}  // namespace hcclsim::clients
