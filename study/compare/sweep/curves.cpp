#include "study/compare/sweep/curves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "study/compare/sweep/grid.hpp"

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

/// Leaves those points whose command has the figure.
void keep_points_with(std::string_view column, std::vector<StoredPoint>& points, const std::string& database) {
  std::set<std::string> commands;
  for (const StoredPoint& point : points) {
    if (point.figure(column).has_value()) commands.insert(point.command);
  }
  if (commands.empty()) bad_input("sweep", "{}: no point with {} is done", database, column);
  std::erase_if(points, [&](const StoredPoint& point) { return !commands.contains(point.command); });
}

void require_varying(const std::string& name, const std::vector<std::string>& axes, const std::string& database) {
  if (std::find(axes.begin(), axes.end(), name) != axes.end()) return;
  bad_input("sweep", "{}: {} does not vary; inputs that do: {}", database, name, fmt::join(axes, ", "));
}

/// The input over which figures are drawn, and its numbers by value.
std::pair<std::string, std::map<std::string, double>> x_of(const std::vector<StoredPoint>& points,
                                                           const std::vector<std::string>& axes, const std::string& x,
                                                           const std::string& database) {
  if (!x.empty()) require_varying(x, axes, database);
  const std::vector<std::string> last_first(axes.rbegin(), axes.rend());
  for (const std::string& axis : last_first) {
    if (!x.empty() && axis != x) continue;
    std::map<std::string, double> numbers = numbers_on(axis, points);
    if (!numbers.empty()) return {axis, std::move(numbers)};
  }
  if (!x.empty()) bad_input("sweep", "{}: the values of {} are no numbers, or two of them are the same", database, x);
  bad_input("sweep",
            "{}: {} inputs vary ({}); a plot needs one of numbers, no two of them the same; `hcclsim sweep show` has "
            "all",
            database, axes.size(), fmt::join(axes, ", "));
}

/// The values of an input among points: numbers ascending, else as they come up.
std::vector<std::string> values_on(const std::string& axis, const std::vector<StoredPoint>& points) {
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const StoredPoint& point : points) {
    if (seen.insert(text_on(axis, point)).second) values.push_back(text_on(axis, point));
  }
  const std::map<std::string, double> numbers = numbers_on(axis, points);
  if (numbers.empty()) return values;
  std::sort(values.begin(), values.end(),
            [&](const std::string& a, const std::string& b) { return numbers.at(a) < numbers.at(b); });
  return values;
}

/// The inputs down and across a map; no third one may vary.
std::pair<std::string, std::string> axes_of_map(const std::vector<StoredPoint>& points, const std::string& down,
                                                std::string across, const std::string& database) {
  std::vector<std::string> axes = axes_of(points);
  require_varying(down, axes, database);
  if (!across.empty()) require_varying(across, axes, database);
  if (across == down) bad_input("sweep", "{}: {} cannot be both down and across", database, down);
  std::erase(axes, down);
  if (axes.empty()) bad_input("sweep", "{}: only {} varies; a map needs two inputs", database, down);
  if (across.empty()) across = axes.back();
  std::erase(axes, across);
  if (axes.empty()) return {down, across};
  bad_input("sweep", "{}: {} vary beside {} and {}; choose one value of each, as in --where {}={}", database,
            fmt::join(axes, ", "), down, across, axes.front(), text_on(axes.front(), points.front()));
}

}  // namespace

FigureMap map_of(std::vector<StoredPoint> points, const Criterion& criterion, const std::string& down,
                 const std::string& across, const std::string& database) {
  keep_points_with(criterion.column, points, database);
  FigureMap map;
  std::tie(map.down, map.across) = axes_of_map(points, down, across, database);
  map.columns = values_on(map.across, points);
  map.rows = values_on(map.down, points);
  const auto places = [](const std::vector<std::string>& values) {
    std::map<std::string, std::size_t> found;
    for (std::size_t i = 0; i < values.size(); ++i) found[values[i]] = i;
    return found;
  };
  const auto columns = places(map.columns);
  const auto rows = places(map.rows);
  map.figures.assign(map.rows.size(),
                     std::vector<double>(map.columns.size(), std::numeric_limits<double>::quiet_NaN()));
  const auto place_of = [&](const StoredPoint& point) {
    return std::pair(rows.at(text_on(map.down, point)), columns.at(text_on(map.across, point)));
  };
  for (const StoredPoint& point : points) {
    const std::optional<double> figure = point.figure(criterion.column);
    if (!figure.has_value()) continue;
    const auto [row, column] = place_of(point);
    map.figures[row][column] = *figure;
  }
  for (const RankedGroup& group : ranked(points, criterion)) map.best.push_back(place_of(*group.best));
  return map;
}

void keep_points_at(std::string_view name, std::string_view value, std::vector<StoredPoint>& points,
                    const std::string& database) {
  const std::string axis(name);
  const std::vector<std::string> values = values_on(axis, points);
  const std::string number = canonical_value(value);  // 016 is 16
  std::erase_if(points, [&](const StoredPoint& point) {
    const std::string there = text_on(axis, point);
    return there != value && there != number;
  });
  if (points.empty()) {
    bad_input("sweep", "{}: no point has {}={}; values that there are: {}", database, name, value,
              fmt::join(values, "; "));
  }
}

bool is_geometric(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  if (numbers.size() < 3 || numbers.front() <= 0) return false;
  std::vector<double> steps;
  std::vector<double> factors;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    steps.push_back(numbers[i] - numbers[i - 1]);
    factors.push_back(numbers[i] / numbers[i - 1]);
  }
  const auto spread = [](const std::vector<double>& of) {
    const auto [least, most] = std::minmax_element(of.begin(), of.end());
    return *most / *least;
  };
  return spread(factors) < spread(steps);
}

Curves curves_of(std::vector<StoredPoint> points, std::string_view column, const std::string& x,
                 const std::string& database) {
  constexpr std::size_t most_lines = 8;
  keep_points_with(column, points, database);
  std::vector<std::string> axes = axes_of(points);
  const auto [name, numbers] = x_of(points, axes, x, database);
  Curves curves{.x = name, .unit = unit_of(numbers)};
  std::vector<double> values;
  for (const auto& [value, number] : numbers) {
    curves.values[number] = value;
    values.push_back(number);
  }
  curves.geometric = is_geometric(std::move(values));
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
    bad_input("sweep",
              "{}: {} lines, one per combination of {}; a plot has at most {}; --x takes another input, --where one "
              "value of an input",
              database, curves.lines.size(), fmt::join(axes, ", "), most_lines);
  }
  return curves;
}

}  // namespace hcclsim::study
