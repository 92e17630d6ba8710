#pragma once

#include <string>

#include "study/jobs/job/msjob/msjob.hpp"

namespace hcclsim::study {

/// Pods that a job may have.
inline constexpr std::uint32_t most_job_pods = 10'000;

/// Reads an MSJob as the API server and the operator accept it, and fills in the operator's defaults. Throws
/// Error(bad_input, "msjob") "FILE:LINE: PATH: message" for the first thing that is wrong.
[[nodiscard]] MsJob read_msjob(const std::string& path);
/// The same for a text; `file` names it in messages.
[[nodiscard]] MsJob parse_msjob(const std::string& text, const std::string& file);

}  // namespace hcclsim::study
