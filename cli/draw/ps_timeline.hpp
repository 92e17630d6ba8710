#pragma once

#include <string>

#include "study/jobs/ps/ps.hpp"

namespace hcclsim::cli {

/// The timeline of a job with parameter servers as Chrome trace JSON: the steps of every worker as passes and what
/// follows them until the last pull, and the events of the cluster with its state.
[[nodiscard]] std::string ps_timeline(const study::PsResult& result);

}  // namespace hcclsim::cli
