#include "study/sweep/curves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"
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

}  // namespace

Curves curves_of(const std::vector<StoredPoint>& points, std::string_view column, const std::string& database) {
  constexpr std::size_t most_lines = 8;
  const std::vector<std::string> axes = axes_of(points);
  std::map<std::string, double> numbers;  // by value of x
  const auto x = std::find_if(axes.rbegin(), axes.rend(), [&](const std::string& axis) {
    numbers = numbers_on(axis, points);
    return !numbers.empty();
  });
  if (x == axes.rend() || axes.size() > 2) {
    bad_input("sweep",
              "{}: {} inputs vary ({}); a plot needs one of numbers, no two of them the same, and at most one other; "
              "`hcclsim sweep show` has all",
              database, axes.size(), fmt::join(axes, ", "));
  }
  Curves curves{*x, {}};
  for (const StoredPoint& point : points) {
    std::string name;
    for (const std::string& axis : axes) {
      if (axis != *x) name = fmt::format("{} {}", axis, text_on(axis, point));
    }
    auto line =
        std::find_if(curves.lines.begin(), curves.lines.end(), [&](const auto& one) { return one.first == name; });
    if (line == curves.lines.end()) line = curves.lines.insert(line, {name, {}});
    line->second[numbers.at(text_on(*x, point))] =
        point.figure(column).value_or(std::numeric_limits<double>::quiet_NaN());
  }
  if (curves.lines.size() > most_lines) {
    bad_input("sweep", "{}: {} lines, one per value beside {}; a plot has at most {}", database, curves.lines.size(),
              *x, most_lines);
  }
  const bool known = std::any_of(points.begin(), points.end(),
                                 [&](const StoredPoint& point) { return point.figure(column).has_value(); });
  if (!known) bad_input("sweep", "{}: no point with {} is done", database, column);
  return curves;
}

}  // namespace hcclsim::study
