#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "study/communication/schedules/check.hpp"
#include "study/communication/schedules/compare.hpp"
#include "study/communication/schedules/time.hpp"

/// What the commands of `hcclsim schedule` print, as text, JSON and CSV (docs/formats.md).
namespace hcclsim::cli {

[[nodiscard]] std::string check_text(const study::ScheduleCheck& result);
/// A line that says how many findings of a level are not described; empty if all are.
[[nodiscard]] std::string more_findings(const hccl::LevelReport& level, std::string_view indent);
[[nodiscard]] std::string check_json(const study::ScheduleCheck& result, const std::string& file);
/// Of a file that could not be checked, among others.
[[nodiscard]] std::string unchecked_json(const Error& error, const std::string& file);

[[nodiscard]] std::string times_text(const study::ScheduleTimes& times, const study::TimeSpec& spec);
[[nodiscard]] std::string times_json(const study::ScheduleTimes& times, const study::TimeSpec& spec);
[[nodiscard]] std::string times_csv(const study::ScheduleTimes& times);

[[nodiscard]] std::string comparison_text(const study::ScheduleComparison& comparison, const study::CompareSpec& spec);
[[nodiscard]] std::string comparison_json(const study::ScheduleComparison& comparison, const study::CompareSpec& spec);

[[nodiscard]] std::string execution_text(const study::ScheduleExecution& execution, const std::string& file,
                                         std::uint64_t seed);
[[nodiscard]] std::string execution_json(const study::ScheduleExecution& execution, const std::string& file,
                                         std::uint64_t seed);

}  // namespace hcclsim::cli
