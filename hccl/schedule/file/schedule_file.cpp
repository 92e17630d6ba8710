#include "hccl/schedule/file/schedule_file.hpp"

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <zlib.h>

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "base/input_file.hpp"
#include "hccl/schedule/file/checked.hpp"
#include "hccl/schedule/file/message.hpp"
#include "hccl/schedule/validate.hpp"

namespace hcclsim::hccl {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

static_assert(std::endian::native == std::endian::little, "the numbers of a file are little-endian");

/// Its first byte is none that a text begins with.
constexpr std::string_view magic = "\x89HCCLSCH";

/// The first bytes of a binary file; the message follows to the end.
struct Preamble {
  char magic[8] = {};
  std::uint32_t version = schedule_version;
  std::uint32_t checksum = 0;  ///< CRC-32 of the message
  std::uint64_t bytes = 0;     ///< of the message
};

/// Closed forms take little; lists some 70 bytes for every task.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30U;

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// The path of the first field that schedule.proto does not have, in the message or in one within it, such as
/// "stage[0].strand[2].field 31"; empty if it has all. What such a field asks for would be left out silently.
std::string unknown_field(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) return fmt::format("field {}", unknown.field(0).number());
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const std::string inside = unknown_field(reflection.GetRepeatedMessage(message, field, i));
      if (!inside.empty()) return fmt::format("{}[{}].{}", field->name(), i, inside);
    }
  }
  return "";
}

}  // namespace

std::string binary_of(const Schedule& schedule) {
  const std::string message = message_of(schedule).SerializeAsString();
  Preamble preamble;
  std::memcpy(preamble.magic, magic.data(), magic.size());
  preamble.checksum = checksum_of(message);
  preamble.bytes = message.size();
  return std::string(reinterpret_cast<const char*>(&preamble), sizeof preamble) + message;
}

Schedule parse_schedule_binary(std::string_view bytes, const std::string& name, std::vector<Defect>* defects) {
  Preamble preamble;
  if (bytes.size() < sizeof preamble) {
    bad_input("schedule", "{}: has only {} bytes: cut short, or not a schedule", name, bytes.size());
  }
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  if (std::string_view(preamble.magic, magic.size()) != magic) {
    bad_input("schedule", "{}: does not begin as a binary schedule does", name);
  }
  if (preamble.version == 0) bad_input("schedule", "{}: has version 0, which never was: the file is damaged", name);
  if (preamble.version > schedule_version) {
    bad_input("schedule", "{}: is a schedule of version {}; this hcclsim reads version {}", name, preamble.version,
              schedule_version);
  }
  const std::string_view payload = bytes.substr(sizeof preamble);
  if (payload.size() != preamble.bytes) {
    bad_input("schedule", "{}: has {} bytes behind its first {}, which say {}: cut short or damaged", name,
              payload.size(), sizeof preamble, preamble.bytes);
  }
  if (checksum_of(payload) != preamble.checksum) {
    bad_input("schedule", "{}: has a wrong checksum: the file is damaged", name);
  }
  schedule_format::Schedule message;
  if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    bad_input("schedule", "{}: is no message of a schedule", name);
  }
  if (message.version() != preamble.version) {
    bad_input("schedule", "{}: says version {} in its first {} bytes, and {} in the message", name, preamble.version,
              sizeof preamble, message.version());
  }
  if (const std::string field = unknown_field(message); !field.empty()) {
    bad_input("schedule", "{}: {} is none of a schedule of version {}: written by another program or version", name,
              field, schedule_version);
  }
  return checked_schedule(
      message, name, [](const FieldPlace& /*place*/) { return std::string(" "); }, defects);
}

std::string contents_of(const Schedule& schedule, ScheduleForm form) {
  if (form == ScheduleForm::json) return json_of(schedule);
  return form == ScheduleForm::binary ? binary_of(schedule) : text_of(schedule);
}

ScheduleFile read_schedule(const std::string& path, std::vector<Defect>* defects) {
  const InputFile file(path, "schedule");
  if (file.size() == 0) file.fail("is empty, not a schedule");
  if (file.size() > most_bytes) file.fail("has {} bytes; a schedule has at most {}", file.size(), most_bytes);
  const std::string contents = file.text();
  if (contents.front() == magic.front())
    return {parse_schedule_binary(contents, file.path(), defects), ScheduleForm::binary};
  require_utf8(contents, file.path(), "schedule");
  const std::size_t first = contents.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && contents[first] == '{')
    return {parse_schedule_json(contents, file.path(), defects), ScheduleForm::json};
  return {parse_schedule_text(contents, file.path(), defects), ScheduleForm::text};
}

}  // namespace hcclsim::hccl
