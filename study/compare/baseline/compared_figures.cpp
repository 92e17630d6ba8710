#include "study/compare/baseline/compared_figures.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"

namespace hcclsim::study {

Json value_of(const Json& object, std::string_view key) { return object.value(key, nullptr); }

Json list_of(const Json& object, std::string_view key) {
  Json list = value_of(object, key);
  return list.is_array() ? list : Json::array();
}

Json file_name(const Json& path) {
  if (!path.is_string()) return path;
  const auto text = path.get<std::string>();
  return text.substr(text.find_last_of('/') + 1);
}

std::size_t BaselineComparison::figures() const {
  std::size_t sum = 0;
  for (const ComparedPart& part : parts) sum += part.figures;
  return sum;
}

std::size_t BaselineComparison::differences() const {
  std::size_t sum = 0;
  for (const ComparedPart& part : parts) sum += part.differences.size();
  return sum;
}

void FigureComparison::add_figure(ComparedPart& part, const std::string& place, const std::string& key,
                                  const Json& before, const Json& after, const std::string& path) const {
  if (!before.is_object() || !before.contains(key)) return;
  const Json& old_value = before[key];
  const Json new_value = value_of(after, key);
  if (old_value.is_object() && new_value.is_object()) {
    for (const auto& [inner, value] : old_value.items()) {
      add_figure(part, place, inner, old_value, new_value, path + key + '.');
    }
    return;
  }
  ++part.figures;
  if (old_value == new_value) return;
  Difference difference{place, path + key, old_value, new_value};
  if (old_value.is_number() && new_value.is_number()) {
    const auto old = old_value.get<double>();
    const double change = new_value.get<double>() - old;
    if (std::abs(change) <= result_.tolerance * std::abs(old)) return;
    if (old != 0) difference.relative = change / std::abs(old);
  }
  part.differences.push_back(std::move(difference));
}

void FigureComparison::add_figures(ComparedPart& part, const std::string& place, std::span<const std::string_view> keys,
                                   const Json& before, const Json& after) const {
  for (const std::string_view key : keys) add_figure(part, place, std::string(key), before, after);
}

void FigureComparison::must_equal(ComparedPart& part, const std::string& figure, const Json& before,
                                  const Json& after) {
  ++part.figures;
  if (before != after) part.differences.push_back({part.name, figure, before, after});
}

void require_format_version(const Json& result, const std::string& file) {
  constexpr int format_version = 2;
  const Json version = value_of(result, "format_version");
  if (version == format_version) return;
  bad_input("baseline", "{}: it has format_version {}, and {} is read here; store it again with this hcclsim", file,
            version.dump(), format_version);
}

Json read_result(const std::string& file, const std::string& command) {
  const InputFile input(file, "baseline");
  try {
    return parse_json_text(input.text(), file, "baseline");
  } catch (const Error& error) {
    bad_input("baseline", "{}; store a baseline with `hcclsim {} --format json > FILE`", error.what(), command);
  }
}

}  // namespace hcclsim::study
