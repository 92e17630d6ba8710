#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "hccl/schedule/file/checked.hpp"
#include "hccl/schedule/file/message.hpp"
#include "hccl/schedule/file/schedule_file.hpp"

/// protobuf's own mapping between messages and JSON, with the names of schedule.proto.
namespace hcclsim::hccl {
namespace {

namespace json = google::protobuf::util;

/// Numbers of 64 bits, which protobuf writes as texts, become numbers: none is beyond what JSON's readers hold exactly.
Json unquoted(const Json& message) {
  using google::protobuf::FieldDescriptor;
  const auto number = [](const Json& text) { return Json(static_cast<std::uint64_t>(std::stoull(text.text()))); };
  Json made = Json::object();
  for (const auto& [key, value] : message.items()) {
    const FieldDescriptor* const field = schedule_format::Schedule::descriptor()->FindFieldByName(key);
    if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_UINT64) {
      made.append(key, value);
    } else if (field->is_repeated()) {
      Json list = Json::array();
      for (const Json& element : value) list.push_back(number(element));
      made.append(key, std::move(list));
    } else {
      made.append(key, number(value));
    }
  }
  return made;
}

}  // namespace

std::string json_of(const Schedule& schedule) {
  std::string text;
  json::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = json::MessageToJsonString(message_of(schedule), &text, options);
  if (!status.ok()) internal_error("a schedule cannot be written as JSON: {}", status.ToString());
  return unquoted(Json::parse(text)).dump(2) + '\n';
}

Schedule parse_schedule_json(std::string_view text, const std::string& name, std::vector<Defect>* defects) {
  static_cast<void>(parse_json_text(text, name, "schedule"));  // says where what is no JSON stands
  schedule_format::Schedule message;
  const auto status = json::JsonStringToMessage({text.data(), text.size()}, &message);
  if (!status.ok()) {
    std::string problem = std::string(status.message().data(), status.message().size());
    std::replace(problem.begin(), problem.end(), '\n', ' ');
    bad_input("schedule", "{}: {}", name, problem);
  }
  require_version(message.version(), name);
  return checked_schedule(
      message, name, [](const FieldPlace& /*place*/) { return std::string(" "); }, defects);
}

}  // namespace hcclsim::hccl
