#pragma once

#include <string>

#include "base/json.hpp"
#include "study/run/experiment/comm_reuse.hpp"

/// What `--comm-reuse` prints: communication operators and streams before and after, by stage, and the classes.
namespace hcclsim::cli {

[[nodiscard]] std::string comm_reuse_text(const hccl::CommReuseReport& report);
[[nodiscard]] Json comm_reuse_json(const hccl::CommReuseReport& report);

}  // namespace hcclsim::cli
