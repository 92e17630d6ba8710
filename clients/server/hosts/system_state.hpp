#pragma once

#include <sys/types.h>

/// What the system says of threads of a program.
namespace hcclsim::clients {

struct SystemState {
  bool exists = false;
  bool sleeps = false;  ///< one that waits for a disk or is stopped does not
  double cpu_s = 0;     ///< that it has computed
};

[[nodiscard]] SystemState state_of(pid_t process, pid_t thread);

}  // namespace hcclsim::clients
