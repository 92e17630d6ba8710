#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hccl/check/findings.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/verify/timed_check.hpp"
#include "hccl/verify/value_check.hpp"
#include "study/platform/platform.hpp"

/// Schedules in files, proved (docs/checker.md) or executed.
namespace hcclsim::study {

struct CheckSpec {
  std::string file;
  PlatformSpec platform{};  ///< without a file: levels L0 to L7
  std::string soc{};        ///< chip whose limits count where there is no platform; empty: none
  std::uint32_t queue_depth = 0;
  std::optional<std::uint64_t> recorded_order{};
  std::uint32_t last_level = 7;
  bool run = false;  ///< L6, too
};

struct ScheduleCheck {
  hccl::CheckReport report;
  std::optional<hccl::TimedCheck> timing{};  ///< with a platform
  PlatformFacts on{};                        ///< without one: only settings and notes
};

/// Throws Error(bad_input) for a file that is no schedule, or of more ranks than the platform has.
[[nodiscard]] ScheduleCheck check_schedule(const CheckSpec& spec);

/// A schedule and what its values came to, on random data.
struct ScheduleExecution {
  hccl::Schedule schedule;
  hccl::ValueCheck check;
};

/// `workers`: threads, 0: one per processor. Throws Error(bad_input, "memory") that names the file if the buffers of
/// all ranks do not fit into this computer.
[[nodiscard]] ScheduleExecution execute_schedule(const std::string& file, std::uint64_t seed, unsigned workers);

}  // namespace hcclsim::study
