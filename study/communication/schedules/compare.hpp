#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "hccl/schedule/difference.hpp"
#include "study/platform/platform.hpp"

/// Two schedules compared: what they do, and how long it takes on a platform.
namespace hcclsim::study {

struct CompareSpec {
  PlatformSpec platform{};  ///< without a file: times are not compared
  std::string first;
  std::string second;
};

struct ScheduleComparison {
  hccl::ScheduleDifference difference;
  std::optional<std::array<Seconds, 2>> times{};  ///< with a platform
  PlatformFacts on{};

  /// As far as the two networks agree.
  [[nodiscard]] bool equal_times() const;
  [[nodiscard]] bool equal() const { return difference.equal() && equal_times(); }
};

/// Throws Error(bad_input) for files that are no schedules, or of more ranks than the platform has.
[[nodiscard]] ScheduleComparison compare_schedules(const CompareSpec& spec);

}  // namespace hcclsim::study
