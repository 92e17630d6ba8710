#pragma once

#include <string>

#include "hccl/check/findings.hpp"

namespace hcclsim::test {

/// A report for people: the verdict, then one finding a line.
[[nodiscard]] inline std::string text_of(const hccl::CheckReport& report) {
  std::string text = report.verdict;
  for (const hccl::LevelReport& level : report.levels) {
    for (const hccl::Finding& finding : level.findings) {
      text += "\n" + level.level + " " + finding.kind + ": " + finding.message;
    }
  }
  return text;
}

}  // namespace hcclsim::test
