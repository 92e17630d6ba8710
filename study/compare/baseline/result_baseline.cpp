#include "study/compare/baseline/result_baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// A list of a result, and the keys that name its elements.
struct NamedList {
  std::string_view key;
  std::string_view element;  ///< what one is called
  std::array<std::string_view, 3> names{};
};

struct ResultForm {
  std::string_view command;
  std::array<NamedList, 2> lists{};
};

const ResultForm& form_of(ResultKind kind) {
  static constexpr std::array<ResultForm, 4> forms{
      {{"collective", {{{"rows", "size", {"op", "bytes", "dtype"}}}}},
       {"schedule check", {{{"levels", "level", {"level"}}}}},
       {"schedule time", {{{"schedules", "schedule", {"file"}}}}},
       {"schedule diff", {{{"fields", "field", {"name"}}, {"stages", "stage", {"name"}}}}}}};
  return forms.at(static_cast<std::size_t>(kind));
}

/// Sentences, and what follows from the options of the moment.
bool is_compared(std::string_view key) {
  constexpr std::array<std::string_view, 9> left_out{"notes",    "not_modelled",   "explain", "baseline",  "verdict",
                                                     "findings", "format_version", "links",   "links_used"};
  return std::find(left_out.begin(), left_out.end(), key) == left_out.end();
}

[[noreturn]] void refuse_equal_names(std::string_view what, const std::string& name) {
  bad_input("baseline", "two {}s are named {}: which is which in a baseline? Give them other names", what, name);
}

bool names_a_file(std::string_view key) {
  constexpr std::array<std::string_view, 5> files{"file", "a", "b", "platform", "rank_table"};
  return std::find(files.begin(), files.end(), key) != files.end();
}

class ResultComparison : private FigureComparison {
 public:
  ResultComparison(const ResultForm& form, double tolerance) : FigureComparison(tolerance), form_(form) {}

  /// `of`: "" or the file that the result is about.
  void add(const Json& before, const Json& now, const std::string& of) {
    ComparedPart& part = new_part(of.empty() ? "result" : of);
    for (const auto& [key, value] : before.items()) {
      if (list_at(key) == nullptr) add_value(part, part.name, key, before, now);
    }
    for (const NamedList& list : form_.lists) {
      if (!list.key.empty()) add_list(list, before, now, of);
    }
  }

  void add_missing(const std::string& what) {
    ComparedPart& part = new_part(what);
    must_equal(part, "result", "there", nullptr);
  }

  BaselineComparison finish() && { return std::move(*this).result(); }

 private:
  [[nodiscard]] const NamedList* list_at(std::string_view key) const {
    const auto found =
        std::find_if(form_.lists.begin(), form_.lists.end(), [&](const NamedList& list) { return list.key == key; });
    return found == form_.lists.end() ? nullptr : &*found;
  }

  void add_value(ComparedPart& part, const std::string& place, const std::string& key, const Json& before,
                 const Json& now) const {
    if (!is_compared(key)) return;
    if (names_a_file(key)) {
      must_equal(part, key, file_name(value_of(before, key)), file_name(value_of(now, key)));
    } else {
      add_figure(part, place, key, before, now);
    }
  }

  static std::string name_of_element(const NamedList& list, const Json& element) {
    std::string name;
    for (const std::string_view key : list.names) {
      if (key.empty()) continue;
      const Json value = names_a_file(key) ? file_name(value_of(element, key)) : value_of(element, key);
      name += fmt::format(" {}", value.is_string() ? value.get<std::string>() : value.dump());
    }
    return name;
  }

  void add_list(const NamedList& list, const Json& before, const Json& now, const std::string& of) {
    std::map<std::string, Json> known;
    for (const Json& element : list_of(now, list.key)) {
      const std::string name = name_of_element(list, element);
      if (!known.emplace(name, element).second && names_a_file(list.names.front())) {
        refuse_equal_names(list.element, name.substr(1));
      }
    }
    for (const Json& element : list_of(before, list.key)) {
      const std::string name = name_of_element(list, element);
      ComparedPart& part = new_part(fmt::format("{}{}{}{}", of, of.empty() ? "" : ", ", list.element, name));
      const auto found = known.find(name);
      if (found == known.end()) {
        must_equal(part, "result", "there", nullptr);
        continue;
      }
      for (const auto& [key, value] : element.items()) add_value(part, part.name, key, element, found->second);
    }
  }

  const ResultForm& form_;
};

/// The results by their file; one by itself has no name.
std::map<std::string, Json> by_file(const Json& results) {
  std::map<std::string, Json> found;
  if (results.is_array()) {
    for (const Json& one : results) {
      const Json name = file_name(value_of(one, "file"));
      const std::string text = name.is_string() ? name.get<std::string>() : name.dump();
      if (!found.emplace(text, one).second) refuse_equal_names("file", text);
    }
  } else {
    found.emplace("", results);
  }
  return found;
}

bool is_result(const Json& json, const ResultForm& form) {
  if (!json.is_object() || !json.contains("format_version")) return false;
  return json.contains(form.lists.front().key);
}

}  // namespace

std::string_view name_of(ResultKind kind) { return form_of(kind).command; }

Json read_baseline(const std::string& file, ResultKind kind) {
  const ResultForm& form = form_of(kind);
  Json baseline = read_result(file, std::string(form.command));
  for (const auto& [name, one] : by_file(baseline)) {
    if (!is_result(one, form)) {
      bad_input("baseline",
                "{}: this is not what `hcclsim {}` prints; store a baseline with `hcclsim {} --format json > FILE`",
                file, form.command, form.command);
    }
    require_format_version(one, file);
  }
  return baseline;
}

BaselineComparison compare_results(ResultKind kind, const Json& baseline, const Json& now, double tolerance) {
  ResultComparison comparison(form_of(kind), tolerance);
  const std::map<std::string, Json> known = by_file(now);
  const bool several = known.size() > 1 || baseline.is_array();
  for (const auto& [name, before] : by_file(baseline)) {
    // One file by itself is compared with one file by itself, whatever its name.
    const auto found = !several ? known.begin() : known.find(name);
    if (found == known.end()) {
      comparison.add_missing(name);
    } else {
      comparison.add(before, found->second, several ? name : "");
    }
  }
  return std::move(comparison).finish();
}

}  // namespace hcclsim::study
