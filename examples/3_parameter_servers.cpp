#include <fmt/format.h>

#include "study/jobs/ps/ps.hpp"

/// How long a synchronous step of ResNet50 takes on four 910A with one to four parameter servers on the other NPUs.
int main() {
  hcclsim::study::RunSpec run;
  run.platform.file = "atlas800-9000";
  run.npus = 4;
  for (const std::uint32_t servers : {1U, 2U, 4U}) {
    hcclsim::study::PsSpec spec;
    spec.servers = servers;
    fmt::print("{} servers: step {:.3f} ms\n", servers, hcclsim::study::ps_step_time(run, spec) * 1e3);
  }
}
