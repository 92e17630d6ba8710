#include "study/compare/sweep/grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <unordered_set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "study/communication/measure/names.hpp"

namespace hcclsim::study {
namespace {

constexpr std::size_t most_points = 1'000'000;

void require_few(const std::string& axis, std::string_view text, double values) {
  if (values <= static_cast<double>(most_points)) return;
  bad_input("sweep", "{}: '{}' has {:.12g} values; at most {} are taken", axis, text, values, most_points);
}

/// A size in bytes as sizes are written: with the largest letter that leaves a whole number.
std::string size_text(double bytes) {
  constexpr double kilo = 1024;
  std::string letter;
  for (const char each : std::string_view("KMG")) {
    if (bytes < kilo || std::fmod(bytes, kilo) != 0) break;
    bytes /= kilo;
    letter = each;
  }
  return fmt::format("{:.0f}{}", bytes, letter);
}

/// A size with letters as a number of bytes.
Quantity bytes_of(const std::string& axis, std::string_view text) {
  try {
    return {static_cast<double>(parse_size(text)), {}};
  } catch (const Error& error) {
    bad_input("sweep", "{}: {}", axis, error.what());
  }
}

/// The numbers of a range; its text itself if it is none. Sums of steps are printed to 12 digits, so that ten tenths
/// are 1. Sizes with letters are counted in bytes.
std::vector<std::string> range_values(const std::string& axis, std::string_view text, bool sizes = false) {
  const std::vector<std::string_view> parts = split_trimmed(text, ':');
  if (parts.size() != 3) return {std::string(text)};
  auto first = parse_quantity(parts[0]);
  auto last = parse_quantity(parts[1]);
  const bool factor = parts[2].starts_with('x');
  auto step = parse_quantity(factor ? parts[2].substr(1) : parts[2]);
  if (!first || !last || !step) return {std::string(text)};
  const bool letters = sizes && !(first->unit.empty() && last->unit.empty() && (factor || step->unit.empty()));
  if (letters) {
    first = bytes_of(axis, parts[0]);
    last = bytes_of(axis, parts[1]);
    if (!factor) step = bytes_of(axis, parts[2]);
  }
  if (first->unit != last->unit || (factor ? !step->unit.empty() : step->unit != first->unit)) {
    bad_input("sweep", "{}: the parts of the range '{}' differ in their units; give all of them the same", axis, text);
  }
  const bool ends = factor ? first->number > 0 && last->number > 0 && step->number > 0 && step->number != 1 &&
                                 (step->number > 1) == (last->number >= first->number)
                           : step->number != 0 && (step->number > 0) == (last->number >= first->number);
  if (!ends && first->number != last->number) {
    bad_input("sweep", "{}: the range '{}' does not lead from its first to its last value", axis, text);
  }
  constexpr double tolerance = 1e-9;
  const double count = first->number == last->number
                           ? 0
                           : (factor ? std::log(last->number / first->number) / std::log(step->number)
                                     : (last->number - first->number) / step->number);
  require_few(axis, text, std::floor(count + tolerance) + 1);
  std::vector<std::string> values;
  for (std::size_t i = 0; static_cast<double>(i) <= count + tolerance; ++i) {
    const auto steps = static_cast<double>(i);
    const double number = factor ? first->number * std::pow(step->number, steps) : first->number + steps * step->number;
    values.push_back(letters ? size_text(std::round(number)) : fmt::format("{:.12g}{}", number, first->unit));
  }
  return values;
}

/// All combinations of the ranges in a list.
std::vector<std::string> list_values(const std::string& axis, std::string_view text) {
  std::vector<std::string> lists{""};
  for (const std::string_view item : split_trimmed(text, ',')) {
    const std::vector<std::string> values = range_values(axis, item);
    require_few(axis, text, static_cast<double>(values.size()) * static_cast<double>(lists.size()));
    std::vector<std::string> longer;
    for (const std::string& value : values) {
      for (const std::string& list : lists) longer.push_back(list.empty() ? value : fmt::format("{},{}", list, value));
    }
    lists = std::move(longer);
  }
  return lists;
}

/// "032" is "32", "1.50GBps" is "1.5GBps"; what would then be another quantity is none: "1.2.3", "1e2e3".
std::string canonical_item(std::string_view item) {
  const auto quantity = parse_quantity(item);
  if (!quantity) return std::string(item);
  const std::string_view digits = item.substr(0, item.find_first_not_of("0123456789"));
  if (digits.size() + quantity->unit.size() < item.size()) {
    std::string canonical = fmt::format("{}{}", quantity->number, quantity->unit);
    const auto again = parse_quantity(canonical);
    const bool same = again && again->number == quantity->number && again->unit == quantity->unit;
    return same ? canonical : std::string(item);
  }
  // Whole numbers may have more digits than a double.
  const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  return std::string(item.substr(first));
}

}  // namespace

std::vector<std::string> axis_values(const std::string& axis, std::string_view text, ValueForm form) {
  std::vector<std::string> values;
  for (const std::string_view part : split_trimmed(text, form == ValueForm::list ? ';' : ',')) {
    std::vector<std::string> some =
        form == ValueForm::list ? list_values(axis, part) : range_values(axis, part, form == ValueForm::size);
    std::move(some.begin(), some.end(), std::back_inserter(values));
    require_few(axis, text, static_cast<double>(values.size()));
  }
  std::unordered_set<std::string> known;
  std::erase_if(values, [&](const std::string& value) {
    if (value.empty()) bad_input("sweep", "{}: a value of '{}' is empty", axis, text);
    return !known.insert(value).second;
  });
  return values;
}

std::string canonical_value(std::string_view value) {
  std::string canonical;
  for (const std::string_view item : split_trimmed(value, ',')) {
    canonical += (canonical.empty() ? "" : ",") + canonical_item(item);
  }
  return canonical;
}

std::string with_rest(const std::string& percentages) {
  double sum = 0;
  for (const std::string_view item : split_trimmed(percentages, ',')) {
    const auto quantity = parse_quantity(item);
    if (!quantity || !quantity->unit.empty()) return percentages;
    sum += quantity->number;
  }
  constexpr double whole = 100;
  constexpr double nothing = 1e-9;  // what rounding leaves of a sum of percentages
  return whole - sum > nothing ? fmt::format("{},{:.12g}", percentages, whole - sum) : percentages;
}

std::vector<std::string> split_edits(const std::string& text) {
  std::vector<std::string> edits;
  for (const std::string_view item : split(text, ',')) {
    if (edits.empty() || item.find('=') != std::string_view::npos) {
      edits.emplace_back(item);
    } else {
      edits.back().append(",").append(item);
    }
  }
  return edits;
}

void Grid::set(Axis axis) {
  const auto same = std::find_if(axes_.begin(), axes_.end(), [&](const Axis& each) { return each.name == axis.name; });
  if (same == axes_.end()) {
    axes_.push_back(std::move(axis));
  } else {
    same->values = std::move(axis.values);
  }
}

std::size_t Grid::size() const {
  double points = 1;
  for (const Axis& axis : axes_) points *= static_cast<double>(axis.values.size());
  if (points > static_cast<double>(most_points)) {
    std::vector<std::string> sizes;
    for (const Axis& axis : axes_) sizes.push_back(fmt::format("{} {}", axis.values.size(), axis.name));
    bad_input("sweep", "the grid has {:.12g} points ({}); at most {} are taken, so give it in parts", points,
              fmt::join(sizes, " x "), most_points);
  }
  return static_cast<std::size_t>(points);
}

std::vector<std::pair<std::string, std::string>> Grid::at(std::size_t point) const {
  std::vector<std::pair<std::string, std::string>> values;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    values.emplace_back(axes_[i].name, axes_[i].values[point % axes_[i].values.size()]);
    point /= axes_[i].values.size();
  }
  std::reverse(values.begin(), values.end());
  return values;
}

}  // namespace hcclsim::study
