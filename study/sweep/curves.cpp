#include "study/sweep/curves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "study/sweep/ranking.hpp"

namespace hcclsim::study {
namespace {

std::string text_on(const std::string& axis, const StoredPoint& point) {
  return point.inputs.value(axis, std::string()).text();
}

/// The values of an axis and their numbers; empty if they are none.
std::map<std::string, double> numbers_on(const std::string& axis, const std::vector<StoredPoint>& points) {
  std::map<std::string, double> found;
  for (const StoredPoint& point : points) found[text_on(axis, point)] = 0;
  std::vector<std::string> values;
  for (const auto& [value, _] : found) values.push_back(value);
  const std::optional<std::vector<double>> numbers = axis_numbers(values);
  if (!numbers.has_value()) return {};
  for (std::size_t i = 0; i < values.size(); ++i) found[values[i]] = (*numbers)[i];
  return found;
}

/// The unit that all values have; empty if some have another or none.
std::string unit_of(const std::map<std::string, double>& numbers) {
  std::string unit;
  for (const auto& [value, _] : numbers) {
    const std::optional<Quantity> quantity = parse_quantity(value);
    if (!quantity.has_value() || (value != numbers.begin()->first && quantity->unit != unit)) return {};
    unit = quantity->unit;
  }
  return unit.find(',') == std::string::npos ? unit : "";
}

/// Whether the factors between numbers vary less than the steps, as those of 1K, 4K, 1M do.
bool is_geometric(const std::map<double, std::string>& values) {
  if (values.size() < 3 || values.begin()->first <= 0) return false;
  std::vector<double> steps;
  std::vector<double> factors;
  for (auto next = std::next(values.begin()); next != values.end(); ++next) {
    const double before = std::prev(next)->first;
    steps.push_back(next->first - before);
    factors.push_back(next->first / before);
  }
  const auto spread = [](const std::vector<double>& of) {
    const auto [least, most] = std::minmax_element(of.begin(), of.end());
    return *most / *least;
  };
  return spread(factors) < spread(steps);
}

/// Leaves those points whose command has the figure.
void keep_points_with(std::string_view column, std::vector<StoredPoint>& points, const std::string& database) {
  std::set<std::string> commands;
  for (const StoredPoint& point : points) {
    if (point.figure(column).has_value()) commands.insert(point.command);
  }
  if (commands.empty()) bad_input("sweep", "{}: no point with {} is done", database, column);
  std::erase_if(points, [&](const StoredPoint& point) { return !commands.contains(point.command); });
}

/// The input over which figures are drawn, and its numbers by value.
std::pair<std::string, std::map<std::string, double>> x_of(const std::vector<StoredPoint>& points,
                                                           const std::vector<std::string>& axes, const std::string& x,
                                                           const std::string& database) {
  if (!x.empty() && std::find(axes.begin(), axes.end(), x) == axes.end()) {
    bad_input("sweep", "{}: {} does not vary; inputs that do: {}", database, x, fmt::join(axes, ", "));
  }
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (!x.empty() && *axis != x) continue;
    std::map<std::string, double> numbers = numbers_on(*axis, points);
    if (!numbers.empty()) return {*axis, std::move(numbers)};
  }
  if (!x.empty()) bad_input("sweep", "{}: the values of {} are no numbers, or two of them are the same", database, x);
  bad_input("sweep",
            "{}: {} inputs vary ({}); a plot needs one of numbers, no two of them the same; `hcclsim sweep show` has "
            "all",
            database, axes.size(), fmt::join(axes, ", "));
}

}  // namespace

Curves curves_of(std::vector<StoredPoint> points, std::string_view column, const std::string& x,
                 const std::string& database) {
  constexpr std::size_t most_lines = 8;
  keep_points_with(column, points, database);
  std::vector<std::string> axes = axes_of(points);
  const auto [name, numbers] = x_of(points, axes, x, database);
  Curves curves{.x = name, .unit = unit_of(numbers)};
  for (const auto& [value, number] : numbers) curves.values[number] = value;
  curves.geometric = is_geometric(curves.values);
  std::erase(axes, name);
  std::map<std::string, std::size_t> places;  // of lines
  for (const StoredPoint& point : points) {
    const std::string line = axes.empty() ? "" : name_of_point(point.inputs, axes);
    const auto [place, added] = places.try_emplace(line, curves.lines.size());
    if (added) curves.lines.push_back({line, {}});
    curves.lines[place->second].second[numbers.at(text_on(name, point))] =
        point.figure(column).value_or(std::numeric_limits<double>::quiet_NaN());
  }
  if (curves.lines.size() > most_lines) {
    bad_input("sweep", "{}: {} lines, one per combination of {}; a plot has at most {}; --x takes another input",
              database, curves.lines.size(), fmt::join(axes, ", "), most_lines);
  }
  return curves;
}

}  // namespace hcclsim::study
