#include "study/sweep/ranking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// An input, and what it is where it is not given.
struct WorkAxis {
  std::string_view name;
  std::string_view otherwise{};
};

// Inputs that say what is computed or moved, where and by whom the figures are, beside the number of NPUs, which a
// result has.
constexpr std::array<WorkAxis, 13> work_of_run{{{"model", "resnet50"},
                                                {"gradients"},
                                                {"profile"},
                                                {"input"},
                                                {"classes"},
                                                {"sequence"},
                                                {"layers"},
                                                {"hidden"},
                                                {"heads"},
                                                {"vocabulary"},
                                                {"group"},
                                                {"rank", "0"},
                                                {"batch", "32"}}};
constexpr std::array<WorkAxis, 10> work_of_collective{{{"collective"},
                                                       {"group"},
                                                       {"minbytes", "64M"},
                                                       {"maxbytes", "64M"},
                                                       {"stepbytes"},
                                                       {"stepfactor"},
                                                       {"size"},
                                                       {"datatype", "fp32"},
                                                       {"op", "sum"},
                                                       {"root", "0"}}};
// What of them still matters to figures per second.
constexpr std::size_t kinds_of_run = 12;
constexpr std::size_t kinds_of_collective = 2;

bool is_rate(std::string_view column) { return column.ends_with("_Bps") || column == "images_per_s"; }

std::span<const WorkAxis> work_axes(std::string_view command, std::string_view column) {
  const bool run = command == "run";
  const std::span<const WorkAxis> all =
      run ? std::span<const WorkAxis>(work_of_run) : std::span<const WorkAxis>(work_of_collective);
  return is_rate(column) ? all.first(run ? kinds_of_run : kinds_of_collective) : all;
}

}  // namespace

Criterion parse_criterion(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view given = text.substr(0, colon);
  // As results with parameter servers have it.
  const std::string_view name = given == "samples_per_s" ? "images_per_s" : given;
  const auto* const column = std::find(figure_columns.begin(), figure_columns.end(), name);
  if (column == figure_columns.end()) {
    bad_input("option", "'{}' is no figure; accepted: {}, and samples_per_s for images_per_s", given,
              fmt::join(figure_columns, ", "));
  }
  if (colon == std::string_view::npos) return {*column, is_rate(*column)};
  const std::string_view direction = text.substr(colon + 1);
  if (direction != "max" && direction != "min") {
    bad_input("option", "'{}' of '{}' is neither max nor min", direction, text);
  }
  return {*column, direction == "max"};
}

Criterion default_criterion(std::string_view command) { return {command == "run" ? "step_time_s" : "time_s", false}; }

std::string work_of(const StoredPoint& point, std::string_view column) {
  Json key = Json::array({point.command});
  for (const WorkAxis& axis : work_axes(point.command, column)) {
    key.push_back(point.inputs.value(std::string(axis.name), std::string(axis.otherwise)));
  }
  if (!is_rate(column)) key.push_back(point.npus);
  return key.dump();
}

std::vector<RankedGroup> ranked(const std::vector<StoredPoint>& points, const std::optional<Criterion>& criterion) {
  std::vector<RankedGroup> groups;
  std::map<std::string, std::size_t> places;
  for (const StoredPoint& point : points) {
    const Criterion by = criterion.value_or(default_criterion(point.command));
    const std::optional<double> figure = point.figure(by.column);
    if (point.status != PointStatus::done || !point.stale.empty() || !figure.has_value()) continue;
    const auto [place, added] = places.try_emplace(work_of(point, by.column), groups.size());
    if (added) groups.push_back({&point, 0});
    RankedGroup& group = groups[place->second];
    ++group.points;
    const double best = *group.best->figure(by.column);
    if (by.more ? *figure > best : *figure < best) group.best = &point;
  }
  return groups;
}

std::vector<std::string> axes_of(const std::vector<StoredPoint>& points) {
  std::vector<const Json*> inputs;
  for (const StoredPoint& point : points) inputs.push_back(&point.inputs);
  return varying_axes(inputs);
}

std::vector<std::string_view> columns_in_use(const std::vector<StoredPoint>& points) {
  std::vector<std::string_view> columns(figure_columns.begin(), figure_columns.end());
  std::erase_if(columns, [&](std::string_view column) {
    return std::none_of(points.begin(), points.end(),
                        [&](const StoredPoint& point) { return point.figure(column).has_value(); });
  });
  return columns;
}

}  // namespace hcclsim::study
