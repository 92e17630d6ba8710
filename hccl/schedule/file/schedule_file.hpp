#pragma once

#include <string>
#include <string_view>

#include "hccl/schedule/schedule.hpp"

/// Schedules as files: in protobuf's text format, which people write, or binary (docs/formats.md). Reading refuses what
/// nobody could run (hccl/schedule/validate.hpp). All errors are Error(bad_input, "schedule"); they begin with the
/// file's name and, in the text form, with line and column.
namespace hcclsim::hccl {

[[nodiscard]] std::string text_of(const Schedule& schedule);
/// `name` of the file for messages.
[[nodiscard]] Schedule parse_schedule_text(std::string_view text, const std::string& name);

[[nodiscard]] std::string binary_of(const Schedule& schedule);
[[nodiscard]] Schedule parse_schedule_binary(std::string_view bytes, const std::string& name);

enum class ScheduleForm : bool { text, binary };
[[nodiscard]] std::string contents_of(const Schedule& schedule, ScheduleForm form);

struct ScheduleFile {
  Schedule schedule;
  ScheduleForm form = ScheduleForm::text;
};

/// Reads a file of either form; the binary one is known by its first bytes.
[[nodiscard]] ScheduleFile read_schedule(const std::string& path);

}  // namespace hcclsim::hccl
