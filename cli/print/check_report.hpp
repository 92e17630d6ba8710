#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hccl/check/findings.hpp"
#include "hccl/verify/timed_check.hpp"

/// Report of the checker in text and JSON (docs/formats.md).
namespace hcclsim::cli {

struct CheckResult {
  hccl::CheckReport report;
  std::optional<hccl::TimedCheck> timing{};  ///< with a platform
  std::vector<std::string> unmodelled{};     ///< settings of HCCL without effect
  std::vector<std::string> notes{};          ///< what the user should know about the options and the platform
};

[[nodiscard]] std::string check_text(const CheckResult& result);
[[nodiscard]] std::string check_json(const CheckResult& result);

}  // namespace hcclsim::cli
