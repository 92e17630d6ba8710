#include "hccl/comm/rank_table_json.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

std::string_view kind_of(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a boolean";
  return value.is_string() ? "a string" : "a number";
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file, std::vector<RankTableProblem>& problems) {
  std::vector<std::string> repeated;
  Json json = parse_json_text(text, file, "rank-table", &repeated);
  for (const std::string& path : repeated) {
    problems.push_back({printable(path), "the key is given twice in one object; give it once"});
  }
  return json;
}

std::string path_of(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string path_of(const std::string& path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string shown = ascii_json(text);
  if (shown.size() > most) shown = shown.substr(0, most) + "...\"";
  return shown;
}

const Json* JsonReader::find(const JsonObject& object, const char* key, Need need) {
  if (const Json* const found = object.value.find(key)) return found;
  std::vector<std::string> others;
  for (const auto& [other, value] : object.value.items()) {
    if (std::find(known_.begin(), known_.end(), other) == known_.end()) others.push_back(other);
  }
  std::sort(others.begin(), others.end());
  const std::string meant = nearest(key, others);
  if (need == Need::required) {
    problem(path_of(object.path, key), "the key is missing{}",
            meant.empty() ? "" : fmt::format("; the object has {}", in_quotes(meant)));
  } else if (!meant.empty()) {
    notes_.push_back(fmt::format("{}: an unknown key, not used; did you mean {}?", path_of(object.path, meant), key));
  }
  return nullptr;
}

JsonText JsonReader::text(const JsonObject& object, const char* key, Need need) {
  JsonText text{{}, path_of(object.path, key), false};
  const Json* const value = find(object, key, need);
  if (value == nullptr) return text;
  if (!value->is_string()) {
    problem(text.path, "{} is {}; all values of a rank table are strings{}",
            value->is_number() || value->is_boolean() ? value->dump() : "the value", kind_of(*value),
            value->is_number() ? fmt::format(", such as \"{}\"", value->dump()) : "");
    return text;
  }
  text.text = value->get<std::string>();
  text.given = true;
  return text;
}

std::optional<std::uint64_t> JsonReader::number(const JsonObject& object, const char* key, Need need,
                                                std::uint64_t lowest, std::uint64_t highest) {
  const JsonText text = this->text(object, key, need);
  if (!text.given) return std::nullopt;
  const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(text.text);
  if (number.has_value() && *number >= lowest && *number <= highest) return number;
  problem(text.path, "{} is not accepted: whole numbers from {} {}", in_quotes(text.text), lowest,
          highest == UINT32_MAX ? "on" : fmt::format("to {}", highest));
  return std::nullopt;
}

std::vector<JsonObject> JsonReader::objects(const JsonObject& object, const char* key) {
  const std::size_t before = problems_.size();
  std::vector<JsonObject> objects;
  const std::string path = path_of(object.path, key);
  const Json* const list = find(object, key, Need::required);
  if (list != nullptr && (!list->is_array() || list->empty())) {
    problem(path, "{}; accepted: a list of at least one object",
            list->is_array() ? "the list is empty" : fmt::format("the value is {}", kind_of(*list)));
  } else if (list != nullptr) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& element = (*list)[i];
      if (element.is_object()) {
        objects.push_back({element, path_of(path, i)});
      } else {
        problem(path_of(path, i), "the value is {}; accepted: an object", kind_of(element));
      }
    }
  }
  if (problems_.size() > before) leave_out();
  return objects;
}

}  // namespace hcclsim::hccl
