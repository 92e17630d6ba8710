#include "hccl/comm/rank_table_json.hpp"

#include <algorithm>
#include <set>

#include "base/json_text.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

using Json = nlohmann::json;

/// Follows the parser through objects and lists, to say where a key is that an object has twice.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::vector<RankTableProblem>& problems) : problems_(problems) {}

  void operator()(Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        next_element();
        frames_.push_back({event == Event::array_start, 0, {}, {}});
        break;
      case Event::object_end:
      case Event::array_end:
        frames_.pop_back();
        break;
      case Event::key:
        see(parsed.get<std::string>());
        break;
      case Event::value:
        next_element();
        break;
    }
  }

 private:
  struct Frame {
    bool list = false;
    std::size_t elements = 0;  // begun so far
    std::string key;
    std::set<std::string> keys;
  };

  void next_element() {
    if (!frames_.empty() && frames_.back().list) ++frames_.back().elements;
  }

  void see(const std::string& key) {
    frames_.back().key = key;
    if (frames_.back().keys.insert(key).second) return;
    std::string path;
    for (const Frame& frame : frames_) path = frame.list ? path_of(path, frame.elements - 1) : path_of(path, frame.key);
    problems_.push_back({path, "the key is given twice in one object; give it once"});
  }

  std::vector<RankTableProblem>& problems_;
  std::vector<Frame> frames_;
};

std::string_view kind_of(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a boolean";
  return value.is_string() ? "a string" : "a number";
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file, std::vector<RankTableProblem>& problems) {
  DuplicateKeys duplicates(problems);
  return parse_json_text(text, file, "rank-table", [&](int /*depth*/, Json::parse_event_t event, const Json& parsed) {
    duplicates(event, parsed);
    return true;
  });
}

std::string path_of(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string path_of(const std::string& path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string shown = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > most) shown = shown.substr(0, most) + "...\"";
  return shown;
}

const Json* JsonReader::find(const JsonObject& object, const char* key, Need need) {
  const auto found = object.value.find(key);
  if (found != object.value.end()) return &*found;
  std::vector<std::string> others;
  for (const auto& [other, value] : object.value.items()) {
    if (std::find(known_.begin(), known_.end(), other) == known_.end()) others.push_back(other);
  }
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
