#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/schedule/schedule.hpp"

/// Schedules as files: in protobuf's text format, which people write, binary, or as protobuf's JSON (docs/formats.md).
/// Reading refuses what nobody could run (hccl/schedule/validate.hpp); the checker reads that too, with its defects.
/// All errors are Error(bad_input, "schedule"); they begin with the file's name and, in the text form, with line and
/// column.
namespace hcclsim::hccl {

/// Something wrong with a schedule that could be read.
struct Defect {
  std::string kind;     ///< of a finding of level L0 (docs/checker.md)
  std::string message;  ///< where, in the text form with line and column, and what
};

[[nodiscard]] std::string text_of(const Schedule& schedule);
/// `name` of the file for messages. With `defects` what is wrong with closed forms goes there, all of it.
[[nodiscard]] Schedule parse_schedule_text(std::string_view text, const std::string& name,
                                           std::vector<Defect>* defects = nullptr);

[[nodiscard]] std::string binary_of(const Schedule& schedule);
[[nodiscard]] Schedule parse_schedule_binary(std::string_view bytes, const std::string& name,
                                             std::vector<Defect>* defects = nullptr);

/// 64-bit numbers are numbers, or texts as protobuf writes them.
[[nodiscard]] std::string json_of(const Schedule& schedule);
[[nodiscard]] Schedule parse_schedule_json(std::string_view text, const std::string& name,
                                           std::vector<Defect>* defects = nullptr);

enum class ScheduleForm : std::uint8_t { text, binary, json };
[[nodiscard]] std::string contents_of(const Schedule& schedule, ScheduleForm form);

struct ScheduleFile {
  Schedule schedule;
  ScheduleForm form = ScheduleForm::text;
};

/// Reads a file of any form: the binary one is known by its first bytes, JSON by '{'.
[[nodiscard]] ScheduleFile read_schedule(const std::string& path, std::vector<Defect>* defects = nullptr);

}  // namespace hcclsim::hccl
