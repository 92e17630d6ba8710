#pragma once

#include <string>

#include "study/jobs/ps/ps.hpp"

/// What `hcclsim run --mode ps` prints: text for people, JSON and CSV for programs (docs/formats.md).
namespace hcclsim::cli {

[[nodiscard]] std::string ps_text(const study::PsResult& result);
/// One object with format_version 1.
[[nodiscard]] std::string ps_json(const study::PsResult& result);
/// One row per step of a worker.
[[nodiscard]] std::string ps_csv(const study::PsResult& result);

}  // namespace hcclsim::cli
