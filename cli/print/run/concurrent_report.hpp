#pragma once

#include <string>

#include "study/jobs/concurrent/concurrent.hpp"

/// What `hcclsim run --concurrent` prints: each job alone and beside the others, and the links on which they meet
/// (docs/formats.md).
namespace hcclsim::cli {

[[nodiscard]] std::string concurrent_text(const study::ConcurrentResult& result);
/// One object with format_version 2.
[[nodiscard]] std::string concurrent_json(const study::ConcurrentResult& result);
/// One row per job.
[[nodiscard]] std::string concurrent_csv(const study::ConcurrentResult& result);
/// Settings without effect and notes of the jobs, as lines; what is true of all of them once.
[[nodiscard]] std::string concurrent_remarks(const study::ConcurrentResult& result);

}  // namespace hcclsim::cli
