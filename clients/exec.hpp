#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/settings/launch_mode.hpp"
#include "sim/faults/fault.hpp"
#include "sim/trace.hpp"
#include "study/platform/platform.hpp"

/// Programs written for HCCL and ACL on a simulated cluster: their processes are real, their NPUs are not. They are
/// linked to our libhccl, libascendcl and libmpi (clients/library), which ask this process for all that a device does.
namespace hcclsim::clients {

struct ExecSpec {
  study::PlatformSpec platform{};
  std::vector<std::string> words{};  ///< the program and its arguments
  std::uint32_t processes = 1;
  std::uint32_t per_server = 0;                    ///< processes on a server; 0: as many as it has NPUs
  hccl::LaunchMode launch = hccl::LaunchMode::op;  ///< how hosts issue communication
  std::vector<sim::Fault> faults{};                ///< their dates are those since the start
  std::vector<Rank> traced{};                      ///< NPUs whose spans are kept …
  bool traces_all = false;                         ///< … or all
  std::optional<double> wall_timeout_s{};          ///< of real time, after which the program is given up
  bool poison = false;                             ///< finds uses of memory that do not wait for each other
};

struct ExecResult {
  std::vector<std::string> unmodelled{};  ///< settings of HCCL without effect
  std::vector<std::string> notes{};       ///< sentences: ignored settings, fall-backs
};

/// What happened on the NPUs that were traced.
struct ExecTrace {
  const sim::Trace& spans;
  std::vector<Rank> npus{};
  hccl::Plan plan{};  ///< without tasks: as much of a Plan as a timeline needs
};

/// Starts the processes and simulates until all have ended; they write to the standard streams of this process. If any
/// NPU is traced, `use` gets the trace in the child that simulates, also if the program or the cluster has failed.
/// Throws
/// Error(bad_input) for a spec that is impossible and a program that cannot be started, and
/// Error(simulated_failure) as Simulator::run() does.
ExecResult exec(const ExecSpec& spec, const std::function<void(const ExecTrace&)>& use = {});

/// What a compiler needs for a program: the folders of our headers and libraries, and the libraries' names. Throws
/// Error(bad_input, "program") if they are not there.
[[nodiscard]] std::string compiler_flags();

}  // namespace hcclsim::clients
