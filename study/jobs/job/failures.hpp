#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace hcclsim::study {

/// Something that breaks at a date, counted from the creation of the job.
struct JobFailure {
  enum class Kind : std::uint8_t { process, host };

  Kind kind = Kind::process;
  std::string target;          ///< "worker-1", with the job's name before it or not; or a server, "server0"
  std::int32_t exit_code = 0;  ///< of a process, 1 to 255
  Seconds date = 0;
};

/// "worker-1 exit 137 at 30s" or "host server0 at 1m". Throws Error(bad_input, "option").
[[nodiscard]] JobFailure parse_job_failure(std::string_view text);

/// All of them; "none" stands for none.
[[nodiscard]] std::vector<JobFailure> parse_job_failures(const std::vector<std::string>& texts);

/// A time as parse_duration takes it, and in minutes, hours and days: "90s", "1m", "1.5h", "2d". Throws
/// Error(bad_input, "option") for other texts and for negative and infinite times.
[[nodiscard]] Seconds parse_job_time(std::string_view text);

}  // namespace hcclsim::study
